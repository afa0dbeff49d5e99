# longtake in a container, as a non-root user. Build: docker build -t longtake .
# With an NVIDIA GPU:  docker build -t longtake:cuda --build-arg EXTRAS=all,gpu .   and run it with --gpus all
# Ask:  docker run --rm -v "$PWD:/films:ro" -v longtake:/cache longtake ask film.mp4 "Who leaves first?"
# Page: compose.yaml
FROM python:3.12-slim AS build
ARG EXTRAS=all
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/longtake \
    && /opt/longtake/bin/pip install --no-cache-dir --constraint constraints.txt ".[$EXTRAS]"

FROM python:3.12-slim
ARG EXTRAS=all
# the only system library that the wheels need; for a GPU also the compiler that PyTorch uses for encoders
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 $(case ",$EXTRAS," in *,gpu,*) echo g++ ;; esac) \
    && rm -rf /var/lib/apt/lists/*
# the home folder is the volume and holds everything that is written, so the root can be read-only
RUN useradd --home-dir /cache --create-home viewer
COPY --from=build /opt/longtake /opt/longtake
# the host provides the GPU driver, including video; PyTorch includes the CUDA libraries
ENV PATH=/opt/longtake/bin:$PATH HOME=/cache LONGTAKE_CACHE=/cache NVIDIA_DRIVER_CAPABILITIES=compute,utility,video
# PyTorch loads compiled code from here, since a container's /tmp may be noexec
ENV TORCHINDUCTOR_CACHE_DIR=/cache/.cache/torchinductor
USER viewer
VOLUME /cache
WORKDIR /films
ENTRYPOINT ["longtake"]
