package reducer

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type number struct{ value, count int32 }

func (n *number) free() *int32 { return &n.count }

type numbers = shared[number, *number]

func values(list numbers) (out []int32) {
	for _, n := range list {
		out = append(out, n.value)
	}
	return out
}

// TestSharedListsAreIndependent appends to random lists, which share arrays, and compares all
// lists with copies that share nothing.
func TestSharedListsAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists, want := []numbers{nil}, [][]int32{nil}
		for value := range int32(rapid.IntRange(1, 60).Draw(t, "steps")) {
			i := rapid.IntRange(0, len(lists)-1).Draw(t, "from")
			if rapid.Bool().Draw(t, "newest") {
				i = len(lists) - 1
			}
			from, to := rapid.IntRange(0, min(1, len(lists[i]))).Draw(t, "view from"), len(lists[i])
			if rapid.IntRange(0, 4).Draw(t, "is shortened") == 0 {
				to = rapid.IntRange(from, to).Draw(t, "view to")
			}
			list, _ := lists[i][from:to].append(number{value: value}, rapid.IntRange(0, 5).Draw(t, "spare"))
			lists = append(lists, list)
			want = append(want, append(append([]int32(nil), want[i][from:to]...), value))
			for j := range lists {
				require.Equal(t, want[j], values(lists[j]))
				for _, n := range lists[j] {
					require.Zero(t, n.count, "only the reserved element has a count")
				}
			}
		}
	})
}

func TestASharedListIsCopiedOnlyForASecondSuccessor(t *testing.T) {
	first, isCopy := numbers(nil).append(number{value: 1}, 2)
	require.True(t, isCopy, "a list without an array")
	second, isCopy := first.append(number{value: 2}, 2)
	require.False(t, isCopy)
	_, isCopy = first.append(number{value: 3}, 2)
	require.True(t, isCopy, "a second successor")
	third, isCopy := second.append(number{value: 4}, 2)
	require.False(t, isCopy, "the last free element")
	_, isCopy = third.append(number{value: 5}, 2)
	require.True(t, isCopy, "a full array")

	_, isCopy = make(numbers, 1, 9).append(number{value: 1}, 2)
	require.True(t, isCopy, "an array without a count")
}

func TestOneOfManyConcurrentSuccessorsSharesTheArray(t *testing.T) {
	base := numbers{{value: 1}}.clone(1)
	const n = 8
	lists, isCopy := make([]numbers, n), make([]bool, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { lists[i], isCopy[i] = base.append(number{value: int32(i)}, 1) })
	}
	wg.Wait()
	shares := 0
	for i := range n {
		require.Equal(t, []int32{1, int32(i)}, values(lists[i]))
		if !isCopy[i] {
			shares++
		}
	}
	require.Equal(t, 1, shares)
}
