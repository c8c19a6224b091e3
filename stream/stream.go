package stream

// Conn is a connection to NATS.
type Conn struct{}
