package client

import "context"

// Watch calls changed with the name of each context that may have changed, until ctx is done. Workers tell it over NATS
// when an answer begins or ends, and when a context was deleted. It is a hint that may precede the change, and may be
// missing. Calls come from another goroutine.
func (c *Client) Watch(ctx context.Context, changed func(contextName string)) error {
	conn, err := c.stream.get()
	if err != nil {
		return err
	}
	unsubscribe, err := conn.SubscribeNotices(c.isBound, c.tenant, func(contextName string) {
		if name, ok := c.nameOf(contextName); ok {
			changed(name)
		}
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, unsubscribe)
	return nil
}
