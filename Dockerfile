# One image for every program: `python -m webhook`, `descheduler`, `certs` and the rest; a manifest chooses by `command`.
# The base is pinned by version; a build that must be the same for ever pins it by digest as well:
#   make image BASE=python:3.11.14-slim-bookworm@sha256:...
ARG BASE=python:3.11.14-slim-bookworm

# Packages come as their pinned hashes say, or not at all. What builds them does not get into the image.
FROM ${BASE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.txt /
RUN python -m venv /venv \
 && /venv/bin/pip install --require-hashes --no-deps --only-binary :all: -r /requirements.txt \
 && /venv/bin/pip check \
 && /venv/bin/pip uninstall --yes pip setuptools
# What may come along is in .dockerignore: the programs, and neither tests nor the test bed.
COPY . /app
# The root file system is read-only in a pod, so nothing is compiled there.
RUN rm /app/requirements.txt \
 && /venv/bin/python -m compileall -q -j 0 /app /venv/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="spotshift" \
      org.opencontainers.image.description="Guided, proven and explained moves of pods between spot and on-demand nodes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=packages /venv /venv
COPY --from=packages /app /app
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app
# The numbers that the manifests ask for; nobody else is needed.
USER 65532:65532
# A manifest says which program; without one the image says what there is.
CMD ["python", "-m", "descheduler", "--help"]
