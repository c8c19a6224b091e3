package contexts

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/attributes"
)

// ErrAttributesRefused reports that the server does not allow or support the registration.
var ErrAttributesRefused = errors.New("search attributes are not registered")

// RegisterSearchAttributes registers missing search attributes. If it returns
// [ErrAttributesRefused], an administrator has to register them.
func RegisterSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	missing, err := attributes.Missing(ctx, c.OperatorService(), namespace)
	if errors.Is(err, attributes.ErrType) {
		return fmt.Errorf("%w: %w", ErrAttributesRefused, err)
	}
	if err != nil {
		return attributesError("list", err)
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	// Another worker may have registered them first.
	if err == nil || errors.As(err, new(*serviceerror.AlreadyExists)) {
		return nil
	}
	return attributesError("add", err)
}

func attributesError(what string, err error) error {
	if errors.As(err, new(*serviceerror.PermissionDenied)) ||
		errors.As(err, new(*serviceerror.Unimplemented)) ||
		errors.As(err, new(*serviceerror.InvalidArgument)) {
		return fmt.Errorf("%w: %s: %w", ErrAttributesRefused, what, err)
	}
	return fmt.Errorf("%s search attributes: %w", what, err)
}
