package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "setpoint.dev", Version: "v1alpha1"}

// KubernetesObject is the custom resource; all controllers of the benchmark reconcile the same kind.
type KubernetesObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              KubernetesObjectSpec   `json:"spec"`
	Status            KubernetesObjectStatus `json:"status,omitempty"`
}

// KubernetesObjectSpec holds the ConfigMap to be created.
type KubernetesObjectSpec struct {
	Manifest corev1.ConfigMap `json:"manifest"`
}

// KubernetesObjectStatus says for which generation the ConfigMap is as specified.
type KubernetesObjectStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// KubernetesObjectList is the answer to a list request.
type KubernetesObjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesObject `json:"items"`
}

// DeepCopyInto copies the object into out.
func (in *KubernetesObject) DeepCopyInto(out *KubernetesObject) {
	out.TypeMeta = in.TypeMeta
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.Manifest.DeepCopyInto(&out.Spec.Manifest)
	out.Status = *in.Status.DeepCopy()
}

// DeepCopy returns a copy of the status.
func (in *KubernetesObjectStatus) DeepCopy() *KubernetesObjectStatus {
	out := &KubernetesObjectStatus{ObservedGeneration: in.ObservedGeneration}
	for index := range in.Conditions {
		out.Conditions = append(out.Conditions, *in.Conditions[index].DeepCopy())
	}
	return out
}

// DeepCopyObject implements runtime.Object.
func (in *KubernetesObject) DeepCopyObject() runtime.Object {
	out := new(KubernetesObject)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (in *KubernetesObjectList) DeepCopyObject() runtime.Object {
	out := &KubernetesObjectList{TypeMeta: in.TypeMeta, Items: make([]KubernetesObject, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for index := range in.Items {
		in.Items[index].DeepCopyInto(&out.Items[index])
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &KubernetesObject{}, &KubernetesObjectList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return corev1.AddToScheme(scheme)
}
