package gateway

import (
	"net/http"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// audit adds an entry to the audit log when the status of the response is known, which for a stream is its beginning.
func (g *Gateway) audit(w http.ResponseWriter, r *http.Request, operation string, identity auth.Identity) {
	out, ok := w.(*response)
	if !ok || g.options.Audit == nil {
		return
	}
	out.audit = func() {
		fields := []any{"subject", identity.Subject, "tenant", identity.Tenant, "operation", operation}
		if identity.Token != "" {
			fields = append(fields, "token", identity.Token)
		}
		if name := out.contextOf(r); name != "" {
			fields = append(fields, "context", name)
		}
		fields = append(fields, "status", out.status, "client", out.client, "request_id", requestID(r))
		g.options.Audit.Info("", fields...)
	}
	if out.isBegun {
		out.audited()
	}
}

func (a *response) audited() {
	a.isBegun = true
	if a.audit != nil {
		a.audit()
		a.audit = nil
	}
}
