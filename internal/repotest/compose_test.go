package repotest

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.yaml.in/yaml/v3"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

const composeFile = "docker-compose.yml"

// compose loads docker-compose.yml as Docker does, with .env.example as .env.
func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithEnvFiles(".env.example"), cli.WithDotEnv, cli.WithDefaultProfiles("*"))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}

// variable returns an environment variable of a service, which must have a value.
func variable(t *testing.T, service types.ServiceConfig, name string) string {
	t.Helper()
	value := service.Environment[name]
	require.NotNil(t, value, "%s of service %s", name, service.Name)
	return *value
}

// oneShot reports whether other services wait for the service to complete.
func oneShot(project *types.Project, name string) bool {
	for _, service := range project.Services {
		if service.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

func TestComposeServicesWaitForHealthyDependencies(t *testing.T) {
	project := compose(t)
	for name, service := range project.Services {
		t.Run(name, func(t *testing.T) {
			for other, on := range service.DependsOn {
				if oneShot(project, other) {
					require.Equal(t, types.ServiceConditionCompletedSuccessfully, on.Condition, other)
				} else {
					require.Equal(t, types.ServiceConditionHealthy, on.Condition, other)
				}
			}
			if oneShot(project, name) {
				require.Empty(t, service.Restart)
				return
			}
			require.Equal(t, types.RestartPolicyUnlessStopped, service.Restart)
			require.NotNil(t, service.HealthCheck)
			require.Greater(t, len(service.HealthCheck.Test), 1)
			require.Equal(t, "CMD", service.HealthCheck.Test[0], "not every image has a shell")
		})
	}
}

var pinned = regexp.MustCompile(`:v?\d+\.\d+[^:]*$`)

func TestComposePinsImageVersions(t *testing.T) {
	images := map[string]string{}
	for name, service := range compose(t).Services {
		if service.Build == nil {
			images[name] = service.Image
		}
	}
	from := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(read(t, "Dockerfile"), -1)
	require.Len(t, from, 2)
	images["the build"] = from[0][1]
	require.Equal(t, "scratch", from[1][1], "the image contains only the binaries")
	for name, image := range images {
		require.Regexp(t, pinned, image, name)
	}
}

// A tag that no public file names may not exist, and nobody can check it without the registry.
func TestEachImageNamesASourceOfItsTag(t *testing.T) {
	source := regexp.MustCompile(`^# Tag: github\.com/[\w.-]+/[\w.-]+: \S+$`)
	found := 0
	for _, file := range []string{composeFile, "Dockerfile"} {
		lines := strings.Split(read(t, file), "\n")
		for i, line := range lines {
			line = strings.TrimSpace(line)
			if isImage := strings.HasPrefix(line, "image: ") || strings.HasPrefix(line, "FROM "); !isImage || line == "FROM scratch" {
				continue
			}
			found++
			require.Regexp(t, source, strings.TrimSpace(lines[i-1]), "%s: the line above %q", file, line)
		}
	}
	require.Greater(t, found, 5)
}

func TestComposeRunsTheTestedVersions(t *testing.T) {
	services := compose(t).Services
	tag := func(service string) string {
		_, tag, _ := strings.Cut(services[service].Image, ":")
		tag, _, _ = strings.Cut(tag, "-")
		return "v" + tag
	}
	required := func(mod, module string) string {
		match := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(module) + ` (\S+)`).FindStringSubmatch(read(t, mod))
		require.NotNil(t, match, "%s requires no %s", mod, module)
		return match[1]
	}
	server := required("tools/server/go.mod", "go.temporal.io/server")
	for _, name := range []string{"temporal", "schema", "namespace"} {
		require.Equal(t, server, tag(name), name)
	}
	nats := required("go.mod", "github.com/nats-io/nats-server/v2")
	// The same minor version: images of NATS follow its releases late.
	minor := func(version string) string { return version[:strings.LastIndex(version, ".")] }
	require.Equal(t, minor(nats), minor(tag("nats")))
	require.Equal(t, nats, required("tools/server/go.mod", "github.com/nats-io/nats-server/v2"))
	require.Equal(t, required("tools/s3/go.mod", "github.com/versity/versitygw"), strings.TrimPrefix(tag("s3"), "v"))
	// The module v0.315.0 is Prometheus v3.15.0.
	module := required("tools/prometheus/go.mod", "github.com/prometheus/prometheus")
	require.Equal(t, strings.Replace(module, "v0.3", "v3.", 1), strings.TrimPrefix(tag("prometheus"), "v"))
}

func TestComposeUsesOptionsOfTheWorker(t *testing.T) {
	worker := compose(t).Services["worker"]
	require.Equal(t, 2, worker.GetScale())
	require.NotNil(t, worker.Build)
	require.Greater(t, time.Duration(*worker.StopGracePeriod), contexts.HandBack)

	binary := filepath.Join(t.TempDir(), "worker")
	out, err := exec.Command("go", "build", "-o", binary, "./worker").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dockerfile := read(t, "Dockerfile")
	inImage := worker.HealthCheck.Test[1]
	require.Contains(t, dockerfile, `ENTRYPOINT ["`+inImage+`"]`)
	require.Contains(t, dockerfile, " /out/ "+filepath.Dir(inImage)+"/\n")

	var help []byte
	for _, args := range [][]string{worker.Command, worker.HealthCheck.Test[2:]} {
		help, err = exec.Command(binary, append(slices.Clone(args), "--help")...).CombinedOutput()
		require.NoError(t, err, "%v: %s", args, help)
	}
	for name := range worker.Environment {
		if strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "OTEL_") {
			continue // of the libraries
		}
		require.Regexp(t, `\b`+name+`\b`, string(help), "worker --help does not mention it")
	}
}

func TestOperationsDescribesTheVariablesOfCompose(t *testing.T) {
	operations := read(t, "docs/operations.md")
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(read(t, composeFile), -1) {
		names[match[1]] = true // that the operator sets
	}
	for _, service := range compose(t).Services {
		if service.Build == nil {
			continue // its image documents its variables
		}
		for name := range service.Environment {
			names[name] = true
		}
	}
	require.Greater(t, len(names), 5)
	for name := range names {
		require.Regexp(t, "`"+name+"\\b", operations)
	}
}

func TestTheImageIsStaticAndRunsWithoutRoot(t *testing.T) {
	dockerfile := read(t, "Dockerfile")
	require.Contains(t, dockerfile, "CGO_ENABLED=0 go build")
	worker := compose(t).Services["worker"]
	require.True(t, worker.ReadOnly)
	var writable []string
	for _, volume := range worker.Volumes {
		if volume.ReadOnly {
			continue
		}
		require.Contains(t, dockerfile, "--chown=65532:65532 /empty "+volume.Target+"\n", "the worker must be able to write there")
		writable = append(writable, "file://"+volume.Target)
	}
	// Without TMPDIR, Go creates temporary files in /tmp.
	require.Equal(t, []string{"file:///var/lib/chronicle", "file:///tmp"}, writable)
	require.Regexp(t, `(?s)FROM scratch.*\nUSER [1-9]\d*:[1-9]\d*\n.*ENTRYPOINT`, dockerfile)
}

func TestComposeAddressesServicesByNameAndPort(t *testing.T) {
	project := compose(t)
	ports := map[string]string{"postgres": "5432", "temporal": "7233", "nats": "4222", "s3": "7070"}
	address := func(service, variableName string) string {
		value := variable(t, project.Services[service], variableName)
		u, err := url.Parse(value)
		if err == nil && u.Query().Has("endpoint") {
			u, err = url.Parse(u.Query().Get("endpoint"))
		}
		if err == nil && u.Host != "" {
			return u.Host
		}
		return value
	}
	together := func(service, host, port string) string {
		return net.JoinHostPort(address(service, host), address(service, port))
	}
	for want, addresses := range map[string][]string{
		"postgres": {together("schema", "SQL_HOST", "SQL_PORT"), together("temporal", "POSTGRES_SEEDS", "DB_PORT")},
		"temporal": {address("namespace", "TEMPORAL_ADDRESS"), address("ui", "TEMPORAL_ADDRESS"), address("worker", "TEMPORAL_ADDRESS"), address("gateway", "TEMPORAL_ADDRESS")},
		"nats":     {address("worker", "NATS_URL"), address("gateway", "NATS_URL")},
		"s3":       {address("worker", "BLOB_URL"), address("gateway", "BLOB_URL")},
	} {
		require.Contains(t, project.Services, want)
		for _, got := range addresses {
			require.Equal(t, net.JoinHostPort(want, ports[want]), got)
		}
	}
}

// Each role reads the file of its password, and no other, in a volume that only NATS writes.
func TestComposeGivesEachRoleItsNATSPassword(t *testing.T) {
	services := compose(t).Services
	for name, role := range map[string]string{"worker": "worker", "gateway": "viewer"} {
		service := services[name]
		require.Equal(t, role, variable(t, service, "NATS_USER"))
		var at []types.ServiceVolumeConfig
		for _, volume := range service.Volumes {
			if strings.HasPrefix(volume.Source, "nats-") {
				at = append(at, volume)
			}
		}
		require.Len(t, at, 1, name)
		require.True(t, at[0].ReadOnly)
		file, err := filepath.Rel(at[0].Target, variable(t, service, "NATS_PASSWORD_FILE"))
		require.NoError(t, err)
		made, err := filepath.Rel("/run/nats/"+role, variable(t, services["nats"], strings.ToUpper(role)+"_PASSWORD_FILE"))
		require.NoError(t, err)
		require.Equal(t, made, file)
		require.True(t, slices.ContainsFunc(services["nats"].Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Source == at[0].Source && v.Target == "/run/nats/"+role && !v.ReadOnly
		}))
	}
	owner := regexp.MustCompile(`(?m)^USER (\S+)$`).FindStringSubmatch(read(t, "Dockerfile"))
	require.NotNil(t, owner)
	require.Contains(t, read(t, "deploy/nats.sh"), "chown "+owner[1]+" ")
}

func TestComposePublishesDefaultPortsOnLoopback(t *testing.T) {
	var published []string
	for name, service := range compose(t).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s is for this machine only", name)
			published = append(published, name+" "+port.Published)
		}
	}
	slices.Sort(published)
	_, temporal, err := net.SplitHostPort(client.DefaultHostPort)
	require.NoError(t, err)
	require.Equal(t, []string{
		"gateway 8080", "grafana 3000", "jaeger 16686", "nats 4222", "prometheus 9090", "temporal " + temporal, "ui 8233",
	}, published, "the defaults of starter, of worker --dev and of the programs")
}

func TestComposeSettingsOfServicesAgree(t *testing.T) {
	services := compose(t).Services
	same := func(want string, others map[string]string) {
		t.Helper()
		for service, name := range others {
			require.Equal(t, want, variable(t, services[service], name), "%s of %s", name, service)
		}
	}
	same(variable(t, services["postgres"], "POSTGRES_USER"), map[string]string{"schema": "SQL_USER", "temporal": "POSTGRES_USER"})
	same(variable(t, services["postgres"], "POSTGRES_PASSWORD"), map[string]string{"schema": "SQL_PASSWORD", "temporal": "POSTGRES_PWD"})
	same(variable(t, services["schema"], "SQL_PLUGIN"), map[string]string{"temporal": "DB"})
	same(variable(t, services["namespace"], "TEMPORAL_NAMESPACE"), map[string]string{"worker": "TEMPORAL_NAMESPACE", "gateway": "TEMPORAL_NAMESPACE"})
	same(variable(t, services["worker"], "BLOB_URL"), map[string]string{"gateway": "BLOB_URL"})
	same(variable(t, services["s3"], "ROOT_ACCESS_KEY"), map[string]string{"worker": "AWS_ACCESS_KEY_ID", "gateway": "AWS_ACCESS_KEY_ID"})
	same(variable(t, services["s3"], "ROOT_SECRET_KEY"), map[string]string{"worker": "AWS_SECRET_ACCESS_KEY", "gateway": "AWS_SECRET_ACCESS_KEY"})
	retention, err := time.ParseDuration(variable(t, services["namespace"], "RETENTION"))
	require.NoError(t, err)
	require.Equal(t, devserver.Retention, retention)
}

func TestComposeMountsExistingFilesAtTheConfiguredPaths(t *testing.T) {
	project := compose(t)
	root, err := os.Getwd()
	require.NoError(t, err)
	wanted := map[string][]string{
		"schema":     {project.Services["schema"].Entrypoint[1]},
		"namespace":  {project.Services["namespace"].Entrypoint[1]},
		"temporal":   {variable(t, project.Services["temporal"], "DYNAMIC_CONFIG_FILE_PATH")},
		"nats":       {project.Services["nats"].Entrypoint[1], variable(t, project.Services["nats"], "NATS_CONFIG")},
		"prometheus": {"/etc/prometheus/prometheus.yml", "/etc/prometheus/alerts.yml"},
		"grafana": {
			"/etc/grafana/provisioning/datasources/chronicle.yml", "/etc/grafana/provisioning/dashboards/chronicle.yml",
			variable(t, project.Services["grafana"], "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"),
		},
	}
	for name, service := range project.Services {
		var targets []string
		for _, mount := range service.Configs {
			targets = append(targets, mount.Target)
			file := project.Configs[mount.Source].File
			require.FileExists(t, file)
			inside, err := filepath.Rel(root, file)
			require.NoError(t, err)
			require.True(t, filepath.IsLocal(inside), file)
		}
		if want, ok := wanted[name]; ok {
			require.Equal(t, want, targets, name)
		} else {
			require.Empty(t, targets, name)
		}
		for _, volume := range service.Volumes {
			require.Contains(t, project.Volumes, volume.Source, name)
		}
	}
	require.NotEmpty(t, project.Services["postgres"].Volumes)
}

func TestTheExampleEnvironmentListsTheVariablesOfCompose(t *testing.T) {
	read := map[string]bool{}
	content, err := os.ReadFile(composeFile)
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(content), -1) {
		read[match[1]] = true
	}
	example, err := dotenv.Read(".env.example")
	require.NoError(t, err)
	for name := range read {
		require.Contains(t, example, name)
	}
	for name, value := range example {
		require.Contains(t, read, name)
		if strings.Contains(name, "KEY") {
			require.Empty(t, value)
		}
	}
}

func TestProductionAndDevServerShareDynamicConfig(t *testing.T) {
	var settings map[string][]struct {
		Value any `yaml:"value"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/dynamicconfig.yaml")), &settings))
	got := map[string]string{}
	for key, values := range settings {
		require.Len(t, values, 1, key)
		value, err := json.Marshal(values[0].Value)
		require.NoError(t, err)
		got[key] = string(value)
	}
	for key, want := range devserver.Tuning {
		require.Equal(t, want, got[key], key)
	}
	// Cancellation by worker command needs both settings.
	require.Equal(t, "true", got["system.enableCancelActivityWorkerCommand"])
	require.Equal(t, "true", got["frontend.WorkerCommandsEnabled"])
}
