# `make image` builds this. Whatever is installed has its version and its hashes in image/; to pin the base by its
# digest as well, give --build-arg PYTHON=python@sha256:...
ARG PYTHON=python:3.11.14-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /source
COPY image image
RUN python3 -m venv /build \
    && /build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement image/build.txt \
    && python3 -m venv /opt/rebalancer \
    && /opt/rebalancer/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement image/runtime.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY rebalancer rebalancer
COPY strategies strategies
COPY policies policies
# The last thing pip does is to go: nothing is installed in a running container.
RUN /build/bin/python -m hatchling build --target wheel --directory /dist \
    && /opt/rebalancer/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl \
    && /opt/rebalancer/bin/pip uninstall --yes pip setuptools

FROM ${PYTHON}
COPY --from=build /opt/rebalancer /opt/rebalancer
# The descheduler's manifests and chart start this.
RUN ln -s /opt/rebalancer/bin/rebalancer /bin/descheduler
ENV PATH=/opt/rebalancer/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# Nothing is written: the root may be read-only.
USER 1000:1000
ENTRYPOINT ["rebalancer"]
CMD ["--help"]
