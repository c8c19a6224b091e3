package stream

import (
	"cmp"
	"fmt"

	"github.com/nats-io/nats.go"
)

const maxNotice = 512 // bytes; a context name is shorter

// Notice tells subscribers that a context may have changed.
func (c *Conn) Notice(contextName string) {
	if c.Connected() {
		_ = c.nats.Publish(c.noticeSubject(contextName), []byte(contextName)) // an error means that the connection has just been lost
	}
}

// SubscribeNotices calls notice, from another goroutine, with the names of contexts that may have changed: those of a
// tenant ("": those without one) if isBound, else all.
func (c *Conn) SubscribeNotices(isBound bool, tenant string, notice func(contextName string)) (unsubscribe func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	of := "*"
	if isBound {
		of = token(cmp.Or(tenant, noTenant))
	}
	subject := c.prefix + "." + of + ".*.notice"
	sub, err := c.nats.Subscribe(subject, func(m *nats.Msg) {
		if name := string(m.Data); len(name) <= maxNotice && c.noticeSubject(name) == m.Subject {
			notice(name)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

func (c *Conn) noticeSubject(contextName string) string { return c.subject(contextName, "notice") }
