# The worker and the starter, and nothing else. The dev server is not in it:
# `worker --dev` is for a checkout.
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags clouds -o /out/ ./worker ./starter && mkdir /empty

FROM scratch
# To trust the servers of the models.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /usr/local/bin/
# For blobs and temporary files: a new volume takes its owner from here.
COPY --from=build --chown=65532:65532 /empty /var/lib/chronicle
COPY --from=build --chown=65532:65532 /empty /tmp
USER 65532:65532
ENV HOME=/nonexistent PATH=/usr/local/bin
ENTRYPOINT ["/usr/local/bin/worker"]
