package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose is the parsed docker-compose.yml, loaded without the caller's environment and
// without an .env file.
type compose struct{ project *types.Project }

func load(ctx context.Context, file string) (compose, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithoutEnvironmentResolution, cli.WithDefaultProfiles("*"))
	if err != nil {
		return compose{}, fmt.Errorf("%s: %w", file, err)
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return compose{}, fmt.Errorf("%s: %w", file, err)
	}
	return compose{project}, nil
}

func (c compose) service(name string) (types.ServiceConfig, error) {
	service, err := c.project.GetService(name)
	if err != nil {
		return types.ServiceConfig{}, fmt.Errorf("%s: %w", c.project.ComposeFiles[0], err)
	}
	return service, nil
}

func environment(service types.ServiceConfig, changes map[string]string) []string {
	all := map[string]string{}
	for name, value := range service.Environment {
		if value != nil {
			all[name] = *value
		}
	}
	for name, value := range changes {
		all[name] = value
	}
	var out []string
	for name, value := range all {
		out = append(out, name+"="+value)
	}
	return out
}

// inVolume returns the path below root that corresponds to a path in a volume of the service.
func inVolume(service types.ServiceConfig, path, root string) (string, error) {
	for _, volume := range service.Volumes {
		if relative, err := filepath.Rel(volume.Target, path); err == nil && filepath.IsLocal(relative) {
			return filepath.Join(root, volume.Source, relative), nil
		}
	}
	return "", fmt.Errorf("service %s: %s is in no volume", service.Name, path)
}

func (c compose) mounted(service types.ServiceConfig, target string) (string, error) {
	for _, config := range service.Configs {
		if config.Target == target {
			return filepath.Abs(c.project.Configs[config.Source].File)
		}
	}
	return "", fmt.Errorf("service %s: no file is mounted at %s", service.Name, target)
}
