{{/*
The ClusterRoles of every account, as a JSON list: core, and one for each backend that
is enabled and keeps its data in the Kubernetes API.
*/}}
{{- define "ip-reaper.clusterRoles" -}}
{{- $roles := list "core" -}}
{{- range $name, $backend := .Values.backends -}}
  {{- $etcd := and (eq $name "calico") (include "ip-reaper.etcd" $) -}}
  {{- $unused := and (eq $name "reservedIPs") (not $backend.resources) -}}
  {{- if not (or $etcd $unused (eq (toString $backend.enabled) "false")) -}}
    {{- $roles = append $roles $name -}}
  {{- end -}}
{{- end -}}
{{- toJson $roles -}}
{{- end }}

{{/*
The fields of a binding after its metadata. Takes root, account, kind (of the role) and
part.
*/}}
{{- define "ip-reaper.binds" -}}
{{- $name := include "ip-reaper.fullname" .root -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: "{{ $name }}{{ .part }}{{ .account.suffix }}"
subjects:
- kind: ServiceAccount
  name: "{{ $name }}{{ .account.suffix }}"
  namespace: "{{ .root.Release.Namespace }}"
{{- end }}

{{/*
The rules of the Role. Takes an account.
*/}}
{{- define "ip-reaper.rules.local" -}}
{{- if .release -}}
# RBAC cannot limit a creation by name, nor the journals, which are named after their runs.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, list, delete]
{{ else if .restore -}}
# A restore reads the journals.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list]
{{ end -}}
# The ledger knows since when each allocation has been ownerless.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [ip-reaper-ledger]
  verbs: [get, update]
{{- if or .release .restore }}
# The lease keeps two runs apart.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [ip-reaper]
  verbs: [get, update]
{{- end }}
{{- end }}

{{/*
The rules that every run needs for any store. Takes release.
*/}}
{{- define "ip-reaper.rules.core" -}}
# Which pods exist, and which do StatefulSets want?
- apiGroups: [""]
  resources: [pods]
  verbs: {{ ternary "[get, list]" "[list]" .release }}
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list]
# May a node still run a pod that the API server has deleted?
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
# Which addresses do guests of virtual machines report?
- apiGroups: [kubevirt.io]
  resources: [virtualmachineinstances]
  verbs: [list]
{{- if .release }}
# Which cluster is this? The journal has the answer, so that no restore takes it for another one.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
{{- end }}

{{/*
The rules of the account that restores: to read all that a run reads, and to put back what
it released. Takes the root.
*/}}
{{- define "ip-reaper.rules.restore" -}}
{{- $roles := include "ip-reaper.clusterRoles" . | fromJsonArray -}}
# Does a pod show the address by now?
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [kubevirt.io]
  resources: [virtualmachineinstances]
  verbs: [list]
# Or does a node, as that of a tunnel?
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
# Is the journal of this cluster?
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- if or (has "whereabouts" $roles) (has "overlapping" $roles) }}
# Allocations go back into pools by a patch.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [ippools]
  verbs: {{ ternary "[get, list, patch]" "[list]" (has "whereabouts" $roles) }}
{{- if has "overlapping" $roles }}
# Overlapping reservations are created again, or lose their tombstone by a patch.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [overlappingrangeipreservations]
  verbs: [get, list, create, patch]
{{- end }}
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [list]
{{- end }}
{{- if has "calico" $roles }}
{{ include "ip-reaper.rules.calicoReads" . }}
# Addresses go back into blocks. Their handles count up, or are created again.
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamblocks]
  verbs: [get, list, update]
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamhandles]
  verbs: [get, list, create, update]
{{- end }}
{{- range .Values.backends.reservedIPs.resources }}
- apiGroups: [{{ .resource.group }}]
  resources: [{{ .resource.resource }}]
  verbs: {{ ternary "[list, get, create]" "[list]" (.deleteExpired | default false) }}
{{- if .deleteExpired }}
- apiGroups: [{{ .resource.group }}]
  resources: [{{ .resource.resource }}/status]
  verbs: [update]
{{- end }}
{{- end }}
{{- end }}
