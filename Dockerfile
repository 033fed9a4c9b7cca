# The image: one static binary, its licences, and nothing beside them.
#
#   make image      wraps a binary that is built on this machine; pulls nothing
#   docker build .  builds the binary in a container of Go; give VERSION and COMMIT;
#                   wants BuildKit, which does not build the stage of make image then
#
# It has no CA certificates. The API server's are in the pod, those of etcd and Azure CNS
# in a file that a setting names. For a Pushgateway behind https, SSL_CERT_FILE names theirs:
# components/ca-bundle and the chart's metrics.caBundle mount it.

ARG VERSION=dev
ARG COMMIT=

FROM scratch AS base
ARG VERSION
ARG COMMIT
LABEL org.opencontainers.image.title="ip-reaper" \
      org.opencontainers.image.description="Gives back the pod addresses that nobody uses any more" \
      org.opencontainers.image.source="https://github.com/ip-reaper/ip-reaper" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
USER 65532:65532
ENTRYPOINT ["/ip-reaper"]

# Before the stage that pulls: the classic builder builds all stages above. The context is
# what make image-files writes.
FROM base AS local
COPY . /

# The digest is that of docker-library/repo-info, in repos/golang/remote/1.26.8.md. Its Go only
# downloads the one that go.mod names, as toolchain, and checks it by Go's checksum database.
FROM golang:1.26.8@sha256:9d2f36f06329b2a141b9db99ffa32765cf695ee57b813ca29e245e8670bcbfff AS build
ENV GOTOOLCHAIN=auto
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
ARG COMMIT
RUN make image-files FILES=/image VERSION="${VERSION}" COMMIT="${COMMIT}"

FROM base
COPY --from=build /image/ /
