package repotest

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

var (
	fencePattern   = regexp.MustCompile("(?ms)^```.*?^```\n?")
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	headingPattern = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	codePattern    = regexp.MustCompile("`([^`\n]+)`")
	flagPattern    = regexp.MustCompile(`(?:^|[\s\[])(--[a-z][a-z0-9-]+)`)
)

// documents returns the Markdown files of the repository by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			found[path] = string(text)
		}
	}
	require.Contains(t, found, "README.md")
	require.Contains(t, found, filepath.Join("docs", "architecture.md"))
	return found
}

func TestDocumentationLinksResolve(t *testing.T) {
	all := documents(t)
	for path, text := range all {
		for _, match := range linkPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
			link, err := url.Parse(match[1] + match[2])
			require.NoError(t, err, path)
			if link.IsAbs() {
				continue
			}
			target := path
			if link.Path != "" {
				target = filepath.Join(filepath.Dir(path), link.Path)
				_, err := os.Stat(target)
				assert.NoError(t, err, "%s: dead link", path)
			}
			if document, ok := all[target]; ok && link.Fragment != "" {
				assert.Contains(t, anchors(document), link.Fragment, "%s: dead link to a heading of %s", path, target)
			}
		}
	}
}

// anchors returns the fragments that GitHub gives to headings.
func anchors(document string) []string {
	var found []string
	for _, match := range headingPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(document, ""), -1) {
		lower := strings.ToLower(strings.ReplaceAll(match[1], "`", ""))
		found = append(found, strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(lower, ""), " ", "-"))
	}
	return found
}

func TestDocumentationNamesFilesThatExist(t *testing.T) {
	isFile := regexp.MustCompile(`^[a-z_]+(/[A-Za-z_.]+)*\.(go|js|json|toml|yaml|yml|sh)$`)
	for path, text := range documents(t) {
		for _, match := range codePattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
			name := match[1]
			if !isFile.MatchString(name) || !strings.Contains(name, "/") || strings.Contains(name, "NAME") {
				continue // NAME is a placeholder
			}
			_, err := os.Stat(name)
			assert.NoError(t, err, "%s names a file that does not exist", path)
		}
	}
}

func TestDocumentationNamesCommandsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile(`(?m)^([a-z0-9/-]+):`).FindAllStringSubmatch(string(makefile), -1)
	isTarget := map[string]bool{}
	for _, target := range targets {
		isTarget[target[1]] = true
	}
	source := flagSources(t)
	run := regexp.MustCompile(`\bmake ([a-z][a-z0-9/-]+)`)
	ours := regexp.MustCompile(`^(?:\S*/)?(?:worker|starter)\b|^--`)
	command := regexp.MustCompile(`\bstarter ([a-z]+)\b`)
	for path, text := range documents(t) {
		for _, line := range append(codeSpans(text), codeLines(text)...) {
			for _, match := range run.FindAllStringSubmatch(line, -1) {
				assert.True(t, isTarget[match[1]], "%s: make %s is not a target", path, match[1])
			}
			if !ours.MatchString(line) {
				continue
			}
			for _, match := range command.FindAllStringSubmatch(line, -1) {
				assert.Regexp(t, `Use:\s+"`+match[1]+`\b`, source, "%s: starter %s is not a command", path, match[1])
			}
			for _, match := range flagPattern.FindAllStringSubmatch(line, -1) {
				name := strings.TrimPrefix(match[1], "--")
				assert.True(t, strings.Contains(source, `"`+name+`"`) || name == "help" || name == "version",
					"%s: no command has --%s", path, name)
			}
		}
	}
}

// codeSpans returns the inline code of a document.
func codeSpans(text string) []string {
	var found []string
	for _, match := range codePattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
		found = append(found, strings.ReplaceAll(match[1], `\|`, "|"))
	}
	return found
}

// codeLines returns the lines of the code blocks of a document, without prompts.
func codeLines(text string) []string {
	var found []string
	for _, block := range fencePattern.FindAllString(text, -1) {
		for line := range strings.Lines(block) {
			found = append(found, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	return found
}

// flagSources returns the source of the packages that define flags.
func flagSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"starter/*.go", "worker/*.go", "internal/config/*.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

func TestGoExamplesInDocumentationCompile(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```go\n(package .*?)^```")
	count := 0
	for path, text := range documents(t) {
		for _, match := range block.FindAllStringSubmatch(text, -1) {
			count++
			if strings.Contains(match[1], "github.com/openai/openai-go") {
				continue // of the module test/clients/openai-go, in which the tests of gateway/openai run it
			}
			source := filepath.Join(t.TempDir(), "main.go")
			require.NoError(t, os.WriteFile(source, []byte(match[1]), 0o600))
			// The overlay puts the example into the module, which resolves its imports.
			root, err := os.Getwd()
			require.NoError(t, err)
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			files, err := json.Marshal(map[string]any{"Replace": map[string]string{
				filepath.Join(root, "docs", "main.go"): source,
			}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, files, 0o600))
			out, err := exec.Command("go", "vet", "-overlay", overlay, "./docs").CombinedOutput()
			assert.NoError(t, err, "%s: %s", path, out)
		}
	}
	require.Positive(t, count)
}

func TestArchitectureListsEveryPublicPackage(t *testing.T) {
	text := documents(t)[filepath.Join("docs", "architecture.md")]
	_, section, ok := strings.Cut(text, "\n## Packages\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for _, match := range linkPattern.FindAllStringSubmatch(section, -1) {
		listed[strings.TrimPrefix(match[1], "../")] = true
	}
	out, err := exec.Command("go", "list", "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", "./...").Output()
	require.NoError(t, err)
	isProgram := map[string]bool{"internal": true, "test": true}
	for line := range strings.Lines(string(out)) {
		if name, path, _ := strings.Cut(strings.TrimSpace(line), " "); name == "main" {
			isProgram[strings.TrimPrefix(path, module+"/")] = true
		}
	}
	for line := range strings.Lines(string(out)) {
		_, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		path = strings.TrimPrefix(path, module+"/")
		belongs := listed[path]
		for parent := path; parent != "."; parent = filepath.Dir(parent) {
			belongs = belongs || isProgram[parent]
		}
		assert.True(t, belongs, "docs/architecture.md does not list package %s (list it, or move it to internal)", path)
	}
}

func TestEveryDeliveryPolicyIsDocumented(t *testing.T) {
	events := documents(t)[filepath.Join("docs", "events.md")]
	help, err := os.ReadFile("starter/testdata/help.golden")
	require.NoError(t, err)
	for _, policy := range event.Policy("").Values() {
		assert.Contains(t, events, "\n| `"+string(policy)+"` |", "docs/events.md")
		assert.Regexp(t, `(?m)^\s+`+string(policy)+`\s`, string(help), "starter set policy --help")
	}
}
