# `make image` builds this with docker, podman or buildah; `make release` packs the same content without a registry.
# All that the image holds has its version and its hashes in image/, and none of it is the base's: that only builds.
ARG PYTHON=python:3.11.14-slim-bookworm

FROM ${PYTHON} AS build
ARG TARGETARCH=amd64
WORKDIR /source
COPY image image
RUN python3 -m venv /build \
    && /build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement image/build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY rebalancer rebalancer
COPY strategies strategies
COPY policies policies
RUN /build/bin/python -m hatchling build --target wheel --directory /dist \
    && mkdir /root-of-image \
    && python3 image/rootfs.py "${TARGETARCH}" /dist/*.whl /root-of-image

# No shell, no package manager: an interpreter, its libraries, and the program.
FROM scratch
COPY --from=build /root-of-image /
ENV PATH=/usr/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# Nothing is written: the root may be read-only.
USER 1000:1000
ENTRYPOINT ["rebalancer"]
CMD ["--help"]
