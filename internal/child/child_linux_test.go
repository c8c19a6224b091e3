package child_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// parentGroup is the variable that makes this test binary the parent of a child.
const parentGroup = "CHILD_TEST_GROUP"

func TestMain(m *testing.M) {
	if group, isParent := os.LookupEnv(parentGroup); isParent {
		cmd := exec.Command("/bin/sh", "-c", `trap 'echo restored; exit' TERM; echo up; while :; do sleep 0.01; done`)
		cmd.Stdout = os.Stdout
		p, err := child.Start(cmd, child.Options{OwnGroup: group == "own"})
		if err != nil {
			panic(err)
		}
		_ = p.Err()
		return
	}
	os.Exit(m.Run())
}

func TestAChildEndsWhenItsParentIsKilled(t *testing.T) {
	t.Parallel()
	for group, last := range map[string]string{"own": "up", "shared": "restored"} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentGroup+"="+group)
			// The child inherits the pipe, so reading ends when the child has exited.
			output, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			lines := bufio.NewScanner(output)
			require.True(t, lines.Scan())
			require.NoError(t, parent.Process.Kill())
			newest := lines.Text()
			for lines.Scan() {
				newest = lines.Text()
			}
			require.Equal(t, last, newest)
			require.ErrorContains(t, parent.Wait(), "signal: killed")
		})
	}
}
