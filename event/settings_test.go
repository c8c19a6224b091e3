package event_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestEachSetFieldOverrides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := eventtest.RequestSettings().Draw(t, "one"), eventtest.RequestSettings().Draw(t, "other")
		got := reflect.ValueOf(one.Override(other))
		for i := range got.NumField() {
			want := reflect.ValueOf(other).Field(i)
			if want.IsZero() {
				want = reflect.ValueOf(one).Field(i)
			}
			require.Equal(t, want.Interface(), got.Field(i).Interface(), got.Type().Field(i).Name)
		}
	})
}

func TestTheExampleSetsEveryField(t *testing.T) {
	for _, body := range eventtest.Examples() {
		if settings, ok := body.(event.SetRequestSettings); ok {
			value := reflect.ValueOf(settings)
			for i := range value.NumField() {
				require.False(t, value.Field(i).IsZero(), value.Type().Field(i).Name)
			}
		}
	}
}
