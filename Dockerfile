# Run Dubito without installing Python: docker build -t dubito . && docker run --rm dubito demo
# Play in the browser: docker run --rm -p 8000:8000 dubito web --host 0.0.0.0 --port 8000 --allow-host localhost
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY dubito dubito
COPY bots bots
COPY prompts prompts
COPY examples examples
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.13-slim
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels dubito && useradd --create-home --uid 1000 player
USER 1000
WORKDIR /home/player
VOLUME /home/player
EXPOSE 8000
ENTRYPOINT ["dubito"]
CMD ["--help"]
