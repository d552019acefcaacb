package main

import (
	"fmt"
	"regexp"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// secretName matches variables whose values must not be in a file.
var secretName = regexp.MustCompile(`(?i)(key|keys|token|password|passwd|secret|credential|credentials)$`)

// pod checks a pod's rights and resources, and that all that it names exists.
func (f *file) pod(field string, t core.PodTemplateSpec) {
	f.pods = append(f.pods, t)
	p := t.Spec
	if s := p.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type == core.SeccompProfileTypeUnconfined {
		f.fault("%s.securityContext: needs runAsNonRoot: true and a seccompProfile", field)
	}
	if p.HostNetwork || p.HostPID || p.HostIPC {
		f.fault("%s: shares a namespace with its host", field)
	}
	if a := p.ServiceAccountName; a != "" && f.names["ServiceAccount/"+a] == nil {
		f.fault("%s.serviceAccountName: the file has no ServiceAccount/%s", field, a)
	}
	for i, spread := range p.TopologySpreadConstraints {
		if !selects(spread.LabelSelector, t.Labels) {
			f.fault("%s.topologySpreadConstraints[%d].labelSelector does not match the pod's labels", field, i)
		}
	}
	volumes := f.volumes(field, p.Volumes)
	for i, c := range slices.Concat(p.InitContainers, p.Containers) {
		f.container(fmt.Sprintf("%s.containers[%d] %q", field, i, c.Name), c, volumes)
	}
}

func (f *file) volumes(field string, all []core.Volume) (names []string) {
	for _, v := range all {
		names = append(names, v.Name)
		if v.HostPath != nil {
			f.fault("%s.volumes %q: is a folder of the host", field, v.Name)
		}
		if v.ConfigMap == nil {
			continue
		}
		has, ok := f.keys(v.ConfigMap.Name)
		if !ok {
			f.fault("%s.volumes %q: the file has no ConfigMap/%s", field, v.Name, v.ConfigMap.Name)
			continue
		}
		for _, item := range v.ConfigMap.Items {
			if !slices.Contains(has, item.Key) {
				f.fault("%s.volumes %q: ConfigMap/%s has no key %q", field, v.Name, v.ConfigMap.Name, item.Key)
			}
		}
	}
	return names
}

func (f *file) container(field string, c core.Container, volumes []string) {
	if !pinned(c.Image) {
		f.fault("%s.image %q: name a tag that stays, or a digest", field, c.Image)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
		f.fault("%s.resources.requests: needs cpu and memory", field)
	}
	if c.Resources.Limits.Memory().IsZero() {
		f.fault("%s.resources.limits: needs memory", field)
	}
	s := c.SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
		f.fault("%s.securityContext: needs allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}", field)
	}
	if s != nil && (s.Privileged != nil && *s.Privileged || s.RunAsNonRoot != nil && !*s.RunAsNonRoot || s.RunAsUser != nil && *s.RunAsUser == 0) {
		f.fault("%s.securityContext: takes back what the pod's says", field)
	}
	for _, m := range c.VolumeMounts {
		if !slices.Contains(volumes, m.Name) {
			f.fault("%s.volumeMounts: the pod has no volume %q", field, m.Name)
		}
	}
	f.environment(field, c)
	for name, probe := range map[string]*core.Probe{"startupProbe": c.StartupProbe, "livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe} {
		if probe != nil {
			f.probe(field+"."+name, probe, c.Ports)
		}
	}
}

func (f *file) environment(field string, c core.Container) {
	for _, e := range c.Env {
		if e.Value != "" && secretName.MatchString(e.Name) {
			f.fault("%s.env %s: a secret does not belong into a file: name one by secretKeyRef", field, e.Name)
		}
		if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		ref := e.ValueFrom.ConfigMapKeyRef
		if has, _ := f.keys(ref.Name); !slices.Contains(has, ref.Key) {
			f.fault("%s.env %s: the file has no ConfigMap/%s with a key %q", field, e.Name, ref.Name, ref.Key)
		}
	}
}

// probe checks that a probe asks something, at a port of the container.
func (f *file) probe(field string, p *core.Probe, ports []core.ContainerPort) {
	var asked *intstr.IntOrString
	switch {
	case p.HTTPGet != nil:
		asked = &p.HTTPGet.Port
	case p.TCPSocket != nil:
		asked = &p.TCPSocket.Port
	case p.GRPC != nil:
		port := intstr.FromInt32(p.GRPC.Port)
		asked = &port
	case p.Exec == nil || len(p.Exec.Command) == 0:
		f.fault("%s asks nothing: needs exec, httpGet, tcpSocket or grpc", field)
	}
	if asked == nil {
		return
	}
	if !slices.ContainsFunc(ports, func(c core.ContainerPort) bool {
		return asked.Type == intstr.String && c.Name == asked.StrVal || asked.Type == intstr.Int && c.ContainerPort == asked.IntVal
	}) {
		f.fault("%s: the container has no port %s", field, asked)
	}
}
