{{/*
The name of the program, which is in labels and in the prefix of names.
*/}}
{{- define "ip-reaper.name" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end }}

{{/*
The prefix of all names: ip-reaper, if the release has that name. The name of a CronJob
has at most 52 characters, and -outage-override takes 16 of them.
*/}}
{{- define "ip-reaper.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
  {{- $program := include "ip-reaper.name" . -}}
  {{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name $program) (contains $program .Release.Name) -}}
{{- end -}}
{{- regexReplaceAll "[-.]+$" (trunc 36 $name) "" -}}
{{- end }}

{{/*
The accounts, as a JSON list. suffix is the end of their names. release says whether
their rights are those of runs that release, hostNetwork whether their pods have the network
of their node. namespace is that of the release if there is none.
*/}}
{{- define "ip-reaper.accounts" -}}
{{- $accounts := list (dict "suffix" "" "release" (eq .Values.mode "release") "hostNetwork" .Values.hostNetwork) -}}
{{- if .Values.outage.enabled -}}
  {{- $accounts = append $accounts (dict
    "suffix" "-outage" "release" true "component" "outage"
    "namespace" (include "ip-reaper.outageNamespace" .) "hostNetwork" .Values.outage.hostNetwork
  ) -}}
{{- end -}}
{{- toJson $accounts -}}
{{- end }}

{{/*
The name of the namespace of the outage Jobs, in which there is nothing else. Such a name has
no dot.
*/}}
{{- define "ip-reaper.outageNamespace" -}}
{{- printf "%s-outage" (include "ip-reaper.fullname" .) | replace "." "-" -}}
{{- end }}

{{/*
The labels by which pods are selected. Takes root and account.
*/}}
{{- define "ip-reaper.selector" -}}
app.kubernetes.io/name: {{ include "ip-reaper.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .account }}
{{- with .component }}
app.kubernetes.io/component: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The labels of Jobs and pods. No value replaces one by which pods are selected. Takes root,
account, and further labels.
*/}}
{{- define "ip-reaper.jobLabels" -}}
{{- $own := include "ip-reaper.selector" . | fromYaml -}}
{{- merge $own (.labels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end }}

{{/*
The name and labels of an object. Takes root and account, and further labels. Takes part, which
stands in the name between the prefix and the account's suffix: "", or for example -calico. Takes
job, which is the end of the name of an outage's CronJob.
*/}}
{{- define "ip-reaper.metadata" -}}
name: "{{ include "ip-reaper.fullname" .root }}{{ .part }}{{ .account.suffix }}{{ .job }}"
labels:
  {{- include "ip-reaper.labels" . | nindent 2 }}
{{- end }}

{{/*
The labels of an object. Takes root. Takes account, if the object is part of one, and further
labels.
*/}}
{{- define "ip-reaper.labels" -}}
{{- $own := dict
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63)
-}}
{{- merge $own (include "ip-reaper.jobLabels" . | fromYaml) | toYaml -}}
{{- end }}

{{/*
A ServiceAccount. Takes root, account and namespace.
*/}}
{{- define "ip-reaper.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  namespace: {{ .namespace | quote }}
  {{- include "ip-reaper.metadata" . | nindent 2 }}
  {{- with .root.Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{/*
The image: by its digest or its tag if one is set, or else that of the chart's version. A
chart of a release knows the digest of that one.
*/}}
{{- define "ip-reaper.image" -}}
{{- $released := index (.Chart.Annotations | default dict) "ip-reaper/image-digest" -}}
{{- with .Values.image -}}
{{ .repository }}
{{- if .digest }}@{{ .digest }}
{{- else if .tag }}:{{ .tag }}
{{- else }}:{{ $.Chart.AppVersion }}{{ with $released }}@{{ . }}{{ end }}
{{- end }}
{{- end -}}
{{- end }}

{{/*
"true" if Calico's data are in etcd, or nothing.
*/}}
{{- define "ip-reaper.etcd" -}}
{{- with .Values.backends.calico -}}
{{- if and (eq .datastore "etcdv3") (ne (toString .enabled) "false") }}true{{ end -}}
{{- end -}}
{{- end }}

{{/*
"true" if OpenShift gives the pods their user, or nothing.
*/}}
{{- define "ip-reaper.openshift" -}}
{{- $enabled := toString .Values.openshift.enabled -}}
{{- if or (eq $enabled "true") (and (eq $enabled "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}true{{ end -}}
{{- end }}

{{/*
"true" if the chart has the admission policies, or nothing.
*/}}
{{- define "ip-reaper.admission" -}}
{{- $enabled := toString .Values.admissionPolicies.enabled -}}
{{- /* Not by .Capabilities.APIVersions: without a cluster, Helm knows groups and no kinds. */ -}}
{{- if or (eq $enabled "true") (and (eq $enabled "auto") (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version)) }}true{{ end -}}
{{- end }}
