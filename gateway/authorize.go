package gateway

import (
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// authorize checks what a sender may put into events, and records who decides. Without authentication, anyone may send
// anything.
func (g *Gateway) authorize(identity auth.Identity, events []event.Event) error {
	if g.options.Auth == nil {
		return nil
	}
	for i, e := range events {
		role := auth.RoleWrite
		if decision, ok := e.Body.(event.ApprovalDecided); ok {
			role = auth.RoleApprove
			decision.DecidedBy = identity.Subject
			events[i].Body = decision
		}
		if !identity.Has(role) {
			return missingRole(role)
		}
		if err := reserved(e); err != nil {
			return err
		}
	}
	return nil
}

// ownerOfNew returns the owner of the contexts that a sender creates; "" without authentication.
func (g *Gateway) ownerOfNew(identity auth.Identity) string {
	if g.options.Auth == nil || !identity.Has(auth.RoleWrite) {
		return ""
	}
	return identity.Subject
}

// reserved returns an error for a field that only an operator may set.
func reserved(e event.Event) error {
	var settings *event.RequestSettings
	field := "source.ref"
	switch body := e.Body.(type) {
	case event.SetRequestSettings:
		settings = (*event.RequestSettings)(&body)
	case event.UserMessage:
		settings = body.Settings
	case event.AnswerRequested:
		settings = body.Settings
	case event.ToolResult:
		field = "value"
	case event.SetDetails:
		if body.Owner != "" {
			return &event.FieldError{Tag: e.Tag(), Field: "owner", Problem: "the owner is the subject of the credential that created the context (leave it out)"}
		}
	}
	if e.BlobRef() != "" {
		// A reference to bytes of the origin of a fork is lost when the origin is deleted.
		return &event.FieldError{Tag: e.Tag(), Field: field, Problem: "references to stored bytes are not accepted from clients (send the bytes)"}
	}
	if settings != nil {
		if _, ok := settings.Labels[event.LabelTenant]; ok {
			return &event.FieldError{Tag: e.Tag(), Field: "labels", Problem: "the label " + event.LabelTenant + " is that of the credential (leave it out)"}
		}
	}
	return nil
}
