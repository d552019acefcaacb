# A fermata worker. The agents file and the store are mounted.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -o /fermata ./cmd/fermata

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 fermata && mkdir /data /agents && chown fermata /data
COPY --from=build /fermata /usr/local/bin/fermata
USER fermata
WORKDIR /agents
ENTRYPOINT ["fermata"]
