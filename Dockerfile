# The studio in a container: `docs/deploy.md` says how to build and run it.
ARG BASE=docker.io/library/python:3.11-slim

FROM ${BASE} AS build
COPY dist/*.whl constraints.txt /tmp/
# torch without CUDA; everything in versions that were tested together
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
RUN python3 -m venv /opt/tdce \
    && wheel="$(ls /tmp/tdce-*.whl)" \
    && /opt/tdce/bin/pip install --no-cache-dir --disable-pip-version-check -c /tmp/constraints.txt "${wheel}[studio,onnx,endpoint]"

FROM ${BASE}
COPY --from=build /opt/tdce /opt/tdce
# nobody's account: no shell, no home, no name to log in with
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin tdce
USER 10001:10001
ENV PATH=/opt/tdce/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp
WORKDIR /tmp
EXPOSE 8484
# the artefact is mounted, never part of the image; files of jobs are in /tmp, the only place that is written
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8484/health', timeout=4)"]
ENTRYPOINT ["tdce", "serve"]
CMD ["/artefact/studio.tdce", "--host", "0.0.0.0", "--insecure", "--token-file", "/run/secrets/tdce_token", \
    "--name", "127.0.0.1", "--name", "localhost"]
