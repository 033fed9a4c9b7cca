{{/*
The ClusterRoles that every account has, as a JSON list: core, and one for each backend
that is on and keeps its data in the Kubernetes API.
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
What follows the metadata of a binding. Takes root, account, the role's kind, and part.
*/}}
{{- define "ip-reaper.binds" -}}
{{- $name := include "ip-reaper.fullname" .root -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ $name }}{{ .part }}{{ .account.suffix }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}{{ .account.suffix }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/*
The rules of the Role. Takes an account.
*/}}
{{- define "ip-reaper.rules.local" -}}
{{- if .release -}}
# Creation cannot be limited by name, which is not known to RBAC by then; nor can
# the journals, which are named by their runs.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, list, delete]
{{ end -}}
# The ledger, which remembers since when an entry has had no owner.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames:
  - ip-reaper-ledger
  {{- range untilStep 1 10 1 }}
  - ip-reaper-ledger-{{ . }}
  {{- end }}
  verbs: {{ ternary "[get, update]" "[get]" .release }}
{{- if .release }}
# The lease that keeps two runs apart.
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
What every run needs, whatever the stores are. Takes release.
*/}}
{{- define "ip-reaper.rules.core" -}}
# Who is alive?
- apiGroups: [""]
  resources: [pods]
  verbs: {{ ternary "[get, list]" "[list]" .release }}
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list]
# May its node still be running what the API server does not know any more?
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
{{- if .release }}
# What was released is told by events: on its object, in whatever namespace that
# is, and on the Job.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
{{- end }}

{{/*
What a restore needs beside the rights to release: to create what was deleted.
*/}}
{{- define "ip-reaper.rules.restore" -}}
{{- $roles := include "ip-reaper.clusterRoles" . | fromJsonArray -}}
{{- if has "overlapping" $roles }}
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [overlappingrangeipreservations]
  verbs: [create]
{{- end }}
{{- if has "calico" $roles }}
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamhandles]
  verbs: [create]
{{- end }}
{{- range .Values.backends.reservedIPs.resources }}
{{- if .deleteExpired }}
- apiGroups: [{{ .resource.group }}]
  resources: [{{ .resource.resource }}]
  verbs: [get, create]
- apiGroups: [{{ .resource.group }}]
  resources: [{{ .resource.resource }}/status]
  verbs: [update]
{{- end }}
{{- end }}
{{- end }}
