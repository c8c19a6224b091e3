package connect

import (
	"log/slog"

	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// NATS connects to NATS, and logs when the connection is lost and restored. It waits for the first attempt; connecting
// then continues in the background. The connection is nil if url is empty.
func NATS(url string, options stream.Options, log *slog.Logger) (*stream.Conn, error) {
	if url == "" {
		return nil, nil
	}
	options.OnDisconnect = func(err error) {
		log.Warn("lost the connection to NATS: answers are not streamed until it is restored", "error", err)
	}
	options.OnConnect = func() { log.Info("connected to NATS: answers are streamed") }
	return stream.Connect(url, options)
}
