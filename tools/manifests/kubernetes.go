package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
)

// file is one file for Kubernetes: its objects and their faults.
type file struct {
	path   string
	faults []string
	// where is the object that is being checked.
	where string
	// names has the file's objects by "kind/name".
	names map[string]runtime.Object
	pods  []core.PodTemplateSpec
}

func (f *file) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf("%s: %s", f.where, fmt.Sprintf(format, args...)))
}

// kubernetes checks one file of objects, decoded as an API server does with strict field
// validation.
func kubernetes(path string, data []byte) []string {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		core.AddToScheme, apps.AddToScheme, batch.AddToScheme, autoscaling.AddToScheme, networking.AddToScheme, policy.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return []string{err.Error()}
		}
	}
	decode := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	f := &file{path: path, names: map[string]runtime.Object{}}
	where := map[runtime.Object]string{}
	var objects []runtime.Object
	line := 1
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		f.where = fmt.Sprintf("%s:%d", path, line)
		line += bytes.Count(document, []byte("\n")) + 2
		object, kind, err := decode.Decode(document, nil, nil)
		if err != nil {
			f.fault("%v", err)
			continue
		}
		m, ok := object.(meta.Object)
		if !ok {
			f.fault("%s has no metadata", kind.Kind)
			continue
		}
		f.where += fmt.Sprintf(": %s/%s", kind.Kind, m.GetName())
		f.metadata("metadata", m.GetName(), m.GetLabels())
		if name := kind.Kind + "/" + m.GetName(); f.names[name] != nil {
			f.fault("the file has it twice")
		}
		where[object] = f.where
		f.names[kind.Kind+"/"+m.GetName()] = object
		objects = append(objects, object)
	}
	// All workloads first: the selectors below look for their pods.
	for _, object := range objects {
		f.where = where[object]
		f.workload(object)
	}
	for _, object := range objects {
		f.where = where[object]
		f.selector(object)
	}
	return f.faults
}

func (f *file) metadata(field, name string, set map[string]string) {
	for _, fault := range validation.IsDNS1123Subdomain(name) {
		if name != "" || field == "metadata" {
			f.fault("%s.name %q: %s", field, name, fault)
		}
	}
	for key, value := range set {
		for _, fault := range slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)) {
			f.fault("%s.labels %s=%q: %s", field, key, value, fault)
		}
	}
}

// workload checks an object's pods, and that no object is a secret.
func (f *file) workload(object runtime.Object) {
	switch o := object.(type) {
	case *core.Secret:
		f.fault("a secret does not belong into a file: name it, and say how it is made")
	case *apps.Deployment:
		f.own(o.Spec.Selector, o.Spec.Template)
		f.pod("spec.template.spec", o.Spec.Template)
	case *batch.Job:
		f.pod("spec.template.spec", o.Spec.Template)
	case *networking.NetworkPolicy:
		f.network(o.Spec)
	case *core.Namespace, *core.ConfigMap, *core.ServiceAccount, *core.Service, *policy.PodDisruptionBudget, *autoscaling.HorizontalPodAutoscaler:
	default:
		f.fault("nobody has said what to look at in a %T", o)
	}
}

// metadata169 is where clouds give credentials to every process on their machines.
var metadata169 = netip.MustParseAddr("169.254.169.254")

// network checks that a policy limits where pods may call.
func (f *file) network(p networking.NetworkPolicySpec) {
	if !slices.Contains(p.PolicyTypes, networking.PolicyTypeEgress) {
		f.fault("spec.policyTypes: has no Egress, so pods reach everything")
	}
	for i, rule := range p.Egress {
		if len(rule.To) == 0 || len(rule.Ports) == 0 {
			f.fault("spec.egress[%d]: needs to and ports: without either it is everywhere", i)
		}
		for _, to := range rule.To {
			if to.IPBlock != nil && reaches(*to.IPBlock) {
				f.fault("spec.egress[%d]: %s reaches %s, which gives a cloud's credentials away", i, to.IPBlock.CIDR, metadata169)
			}
		}
	}
}

// reaches reports whether a block contains the metadata address.
func reaches(b networking.IPBlock) bool {
	has := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(metadata169)
	}
	return has(b.CIDR) && !slices.ContainsFunc(b.Except, has)
}

// own checks that a workload selects the pods that it makes.
func (f *file) own(s *meta.LabelSelector, pod core.PodTemplateSpec) {
	f.metadata("spec.template.metadata", pod.Name, pod.Labels)
	if !selects(s, pod.Labels) {
		f.fault("spec.selector does not match spec.template.metadata.labels %s", labels.Set(pod.Labels))
	}
}

// selector checks that what selects pods selects some of this file.
func (f *file) selector(object runtime.Object) {
	var s *meta.LabelSelector
	switch o := object.(type) {
	case *policy.PodDisruptionBudget:
		s = o.Spec.Selector
	case *networking.NetworkPolicy:
		s = &o.Spec.PodSelector
	case *core.Service:
		s = meta.SetAsLabelSelector(o.Spec.Selector)
	case *autoscaling.HorizontalPodAutoscaler:
		if to := o.Spec.ScaleTargetRef; f.names[to.Kind+"/"+to.Name] == nil {
			f.fault("spec.scaleTargetRef: the file has no %s/%s", to.Kind, to.Name)
		}
		return
	default:
		return
	}
	if !slices.ContainsFunc(f.pods, func(p core.PodTemplateSpec) bool { return selects(s, p.Labels) }) {
		f.fault("its selector %s matches no pod of the file", meta.FormatLabelSelector(s))
	}
}

// selects reports whether a selector that exists, and is not empty, matches.
func selects(s *meta.LabelSelector, set map[string]string) bool {
	compiled, err := meta.LabelSelectorAsSelector(s)
	return err == nil && !compiled.Empty() && compiled.Matches(labels.Set(set))
}

// keys returns the keys of a config map in the file; false if it is not there.
func (f *file) keys(name string) ([]string, bool) {
	c, ok := f.names["ConfigMap/"+name].(*core.ConfigMap)
	if !ok {
		return nil, false
	}
	return slices.Collect(maps.Keys(c.Data)), true
}

// pinned reports whether an image is fixed by a digest, or by a tag other than latest.
func pinned(image string) bool {
	if strings.Contains(image, "@sha256:") {
		return true
	}
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return ok && tag != "" && tag != "latest"
}
