# The image: one static binary, and nothing beside it.
#
#   make image      wraps a binary that is built on this machine; pulls nothing
#   docker build .  builds the binary in a container of Go; give VERSION and COMMIT;
#                   wants BuildKit, which does not build the stage of make image then
#
# The CA certificates are in the binary: Mozilla's, from a module that go.sum pins.
# So they are the same wherever the image is built. Those of your own take their
# place where they are mounted at /etc/ssl/certs, or named by SSL_CERT_FILE.

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

# Before the stage that pulls: the classic builder builds all stages above.
FROM base AS local
COPY ip-reaper /ip-reaper

FROM golang:1.26.8 AS build
ENV GOTOOLCHAIN=local
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
ARG COMMIT
RUN make build VERSION="${VERSION}" COMMIT="${COMMIT}" && touch -d @0 bin/ip-reaper

FROM base
COPY --from=build /src/bin/ip-reaper /ip-reaper
