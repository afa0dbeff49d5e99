# longtake in a container, as a user without root. Build: docker build -t longtake .
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
# the one library that our wheels expect of the system; with a GPU also what PyTorch compiles encoders with
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 $(case ",$EXTRAS," in *,gpu,*) echo g++ ;; esac) \
    && rm -rf /var/lib/apt/lists/*
# the home folder is the volume: everything that is written lies there, so the root may be read-only
RUN useradd --home-dir /cache --create-home viewer
COPY --from=build /opt/longtake /opt/longtake
# the GPU's driver comes from the host, with its video part; PyTorch brings CUDA's libraries itself
ENV PATH=/opt/longtake/bin:$PATH HOME=/cache LONGTAKE_CACHE=/cache NVIDIA_DRIVER_CAPABILITIES=compute,utility,video
# PyTorch loads what it compiled from there; programs may not be loaded from a container's /tmp
ENV TORCHINDUCTOR_CACHE_DIR=/cache/.cache/torchinductor
USER viewer
VOLUME /cache
WORKDIR /films
ENTRYPOINT ["longtake"]
