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
A binding in a list, as the admission policies are: Helm makes lists last, and in the order of their
files, so an account has no right before its limits. Takes root, account, kind (of the role) and part.
*/}}
{{- define "ip-reaper.binding" -}}
{{- $name := include "ip-reaper.fullname" .root -}}
apiVersion: v1
kind: List
metadata: {name: bindings} # for helm lint
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: {{ .kind }}Binding
  metadata:
    {{- if eq .kind "Role" }}
    namespace: {{ .root.Release.Namespace | quote }}
    {{- end }}
    {{- include "ip-reaper.metadata" . | nindent 4 }}
  roleRef:
    apiGroup: rbac.authorization.k8s.io
    kind: {{ .kind }}
    name: "{{ $name }}{{ .part }}{{ .account.suffix }}"
  subjects:
  - kind: ServiceAccount
    name: "{{ $name }}{{ .account.suffix }}"
    namespace: {{ .account.namespace | default .root.Release.Namespace | quote }}
{{- end }}

{{/*
The rules of a role: those of the file of its name in rights/, which Kustomize takes too, or what
backends.reservedIPs.resources names. Takes root, role, and release.
*/}}
{{- define "ip-reaper.rules" -}}
{{- if eq .role "reservedIPs" -}}
{{- include "ip-reaper.rules.reservedIPs" .root -}}
{{- else -}}
{{- $file := printf "rights/%s/%s.yaml" (ternary "release" "plan" .release) .role -}}
{{- toYaml (.root.Files.Get $file | fromYaml).rules -}}
{{- end -}}
{{- end }}

{{/*
The right to list what backends.reservedIPs.resources names. Takes the root.
*/}}
{{- define "ip-reaper.rules.reservedIPs" -}}
{{- range $i, $reserved := .Values.backends.reservedIPs.resources }}
{{- if $i }}
{{ end -}}
- apiGroups: [{{ .resource.group | quote }}]
  resources: [{{ .resource.resource | quote }}]
  verbs: [list]
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
# Which of Calico's resources exist, and in which API group? Only a missing
# definition proves that a resource does not exist. Old versions of Calico have no
# IPReservations, and most have no migrations.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames:
  - ipamblocks.crd.projectcalico.org
  - ipamblocks.projectcalico.org
  - ipreservations.crd.projectcalico.org
  - ipreservations.projectcalico.org
  - ippools.crd.projectcalico.org
  - ippools.projectcalico.org
  - ipamconfigs.crd.projectcalico.org
  - ipamconfigurations.projectcalico.org
  - blockaffinities.crd.projectcalico.org
  - blockaffinities.projectcalico.org
  - datastoremigrations.migration.projectcalico.org
  verbs: [get]
# Is the datastore locked, or do its data move to another API group?
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [clusterinformations]
  resourceNames: [default]
  verbs: [get]
- apiGroups: [migration.projectcalico.org]
  resources: [datastoremigrations]
  verbs: [list]
# Which addresses do IPReservations reserve?
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipreservations]
  verbs: [list]
# Addresses go back into blocks. Their handles count up, or are created again.
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamblocks]
  verbs: [get, list, update]
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamhandles]
  verbs: [get, list, create, update]
{{- end }}
{{ include "ip-reaper.rules.reservedIPs" . }}
{{- end }}
