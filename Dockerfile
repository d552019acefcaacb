# A fermata worker. The agents file and the store are mounted.
#
# Only what is committed is built: the context is .git alone (.dockerignore), so neither a
# file that git does not track nor a change that is not committed comes into the image.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY .git .git
RUN git init --quiet && git reset --quiet --hard HEAD
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -o /fermata ./cmd/fermata

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 fermata && mkdir /data /agents && chown fermata /data
COPY --from=build /fermata /usr/local/bin/fermata
USER fermata
WORKDIR /agents
ENTRYPOINT ["fermata"]
