package connect

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// ErrAttributesRefused reports that the server does not allow or support the registration.
var ErrAttributesRefused = errors.New("search attributes are not registered")

// RegisterSearchAttributes registers the search attributes of contexts that are missing, except for those of
// [RegisterDetailAttributes]. If it returns [ErrAttributesRefused], an administrator has to register them, with
// [AttributesCommand].
func RegisterSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	return register(ctx, c, namespace, map[string]enums.IndexedValueType{
		wire.AttributeStatus: enums.INDEXED_VALUE_TYPE_KEYWORD,
		wire.AttributeTurns:  enums.INDEXED_VALUE_TYPE_INT,
		wire.AttributeModel:  enums.INDEXED_VALUE_TYPE_KEYWORD,
	})
}

// RegisterDetailAttributes is [RegisterSearchAttributes] for the title and the labels. A namespace that earlier versions
// used, or whose database has no room for another list, may lack only these.
func RegisterDetailAttributes(ctx context.Context, c client.Client, namespace string) error {
	return register(ctx, c, namespace, map[string]enums.IndexedValueType{
		wire.AttributeTitle:  enums.INDEXED_VALUE_TYPE_KEYWORD,
		wire.AttributeLabels: enums.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	})
}

func register(ctx context.Context, c client.Client, namespace string, attributes map[string]enums.IndexedValueType) error {
	service := c.OperatorService()
	listed, err := service.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return attributesError("list", err)
	}
	missing := map[string]enums.IndexedValueType{}
	for name, want := range attributes {
		got, isRegistered := listed.GetCustomAttributes()[name]
		if isRegistered && got != want {
			return fmt.Errorf("%w: %s is of type %v in namespace %q, not %v", ErrAttributesRefused, name, got, namespace, want)
		}
		if !isRegistered {
			missing[name] = want
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = service.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	// Another worker may have registered them first.
	if err == nil || errors.As(err, new(*serviceerror.AlreadyExists)) {
		return nil
	}
	return attributesError("add", err)
}

func attributesError(what string, err error) error {
	if isRefused(err) {
		return fmt.Errorf("%w: %s: %w", ErrAttributesRefused, what, err)
	}
	return fmt.Errorf("%s search attributes: %w", what, err)
}

// isRefused reports whether the server does not allow or support an operation.
func isRefused(err error) bool {
	return errors.As(err, new(*serviceerror.PermissionDenied)) ||
		errors.As(err, new(*serviceerror.Unimplemented)) ||
		errors.As(err, new(*serviceerror.InvalidArgument))
}

// AttributesCommand returns the command with which an administrator registers all search attributes.
func AttributesCommand(namespace string) string {
	return fmt.Sprintf("temporal operator search-attribute create --namespace %s --name %s --type Keyword --name %s --type Int --name %s --type Keyword --name %s --type Keyword --name %s --type KeywordList",
		namespace, wire.AttributeStatus, wire.AttributeTurns, wire.AttributeModel, wire.AttributeTitle, wire.AttributeLabels)
}
