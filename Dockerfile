# The image contains worker and starter. It lacks the temporal command that `worker --dev` runs.
# Tag: github.com/kserve/kserve: kernelcache-agent.Dockerfile
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -tags clouds -o /out/ ./worker ./starter && mkdir /empty

FROM scratch
# CA certificates for model providers.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /usr/local/bin/
# For blobs and temporary files. A new volume inherits its owner from here.
COPY --from=build --chown=65532:65532 /empty /var/lib/chronicle
COPY --from=build --chown=65532:65532 /empty /tmp
USER 65532:65532
ENV HOME=/nonexistent PATH=/usr/local/bin
ENTRYPOINT ["/usr/local/bin/worker"]
