package activities_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Readers of histories recognize the activity by its type, which is the name of its method.
func TestTheNameOfLoadIsThatOfTheProtocol(t *testing.T) {
	_, ok := reflect.TypeFor[*activities.Activities]().MethodByName(wire.ActivityLoad)
	require.True(t, ok)
}
