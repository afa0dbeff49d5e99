# longtake on a CPU. Build: docker build -t longtake .
# Written without a Docker daemon at hand: not built yet. pip install of the wheel was run in clean environments.
# Ask:  docker run --rm -v "$PWD:/films" -v longtake:/cache longtake ask /films/film.mp4 "Who leaves first?"
# Page: docker run --rm -p 127.0.0.1:8750:8750 -e LONGTAKE_SERVE_TOKEN=… -v "$PWD:/films" -v longtake:/cache \
#           longtake serve --films /films --host 0.0.0.0 --host-name localhost
FROM python:3.12-slim

# the one library that our wheels expect of the system
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/longtake
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt ".[speech,report,serve,mcp,otel]"

# films are somebody's own: nothing runs as root
RUN useradd --create-home viewer && mkdir /cache && chown viewer /cache
USER viewer
ENV LONGTAKE_CACHE=/cache
VOLUME /cache
WORKDIR /films
ENTRYPOINT ["longtake"]
