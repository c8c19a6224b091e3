// Package attributes compares the search attributes of a namespace with those of contexts.
package attributes

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Types are the search attributes of contexts.
var Types = map[string]enums.IndexedValueType{
	wire.AttributeStatus: enums.INDEXED_VALUE_TYPE_KEYWORD,
	wire.AttributeTurns:  enums.INDEXED_VALUE_TYPE_INT,
	wire.AttributeModel:  enums.INDEXED_VALUE_TYPE_KEYWORD,
}

// ErrType reports a registered search attribute of the wrong type.
var ErrType = errors.New("wrong type of search attribute")

// Missing returns those of [Types] that are not registered.
func Missing(ctx context.Context, service operatorservice.OperatorServiceClient, namespace string) (map[string]enums.IndexedValueType, error) {
	listed, err := service.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	missing := map[string]enums.IndexedValueType{}
	for name, want := range Types {
		got, isRegistered := listed.GetCustomAttributes()[name]
		if isRegistered && got != want {
			return nil, fmt.Errorf("%w: %s is of type %v in namespace %q, not %v", ErrType, name, got, namespace, want)
		}
		if !isRegistered {
			missing[name] = want
		}
	}
	return missing, nil
}

// Command returns the command with which an administrator registers all of [Types].
func Command(namespace string) string {
	return fmt.Sprintf("temporal operator search-attribute create --namespace %s --name %s --type Keyword --name %s --type Int --name %s --type Keyword",
		namespace, wire.AttributeStatus, wire.AttributeTurns, wire.AttributeModel)
}
