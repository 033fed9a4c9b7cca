{{/*
The prefix of all names: ip-reaper for a release of that name. A CronJob's name has 52
characters at most, of which -outage-plan takes 12.
*/}}
{{- define "ip-reaper.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
  {{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- end -}}
{{- regexReplaceAll "[-.]+$" (trunc 40 $name) "" -}}
{{- end }}

{{/*
The accounts, as a JSON list. The suffix is that of their names; release says whether
the rights and the policy are those of runs that release.
*/}}
{{- define "ip-reaper.accounts" -}}
{{- $accounts := list (dict "suffix" "" "release" (eq .Values.mode "release")) -}}
{{- if .Values.outage.enabled -}}
  {{- $accounts = append $accounts (dict "suffix" "-outage" "release" true "component" "outage") -}}
{{- end -}}
{{- toJson $accounts -}}
{{- end }}

{{/*
Labels of Jobs and pods. Takes root and account.
*/}}
{{- define "ip-reaper.jobLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .account.component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/*
Name and labels of an object. Takes root, account, and part, which the name has between
the prefix and the account's suffix: "" or such as -policy; and job, which the name of
an outage's CronJob ends in.
*/}}
{{- define "ip-reaper.metadata" -}}
name: {{ include "ip-reaper.fullname" .root }}{{ .part }}{{ .account.suffix }}{{ .job }}
labels:
  {{- include "ip-reaper.jobLabels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{/*
The image, by its digest if there is one.
*/}}
{{- define "ip-reaper.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/*
Whether Calico's data is in etcd: "true" or nothing.
*/}}
{{- define "ip-reaper.etcd" -}}
{{- with .Values.backends.calico -}}
{{- if and (eq .datastore "etcdv3") (ne (toString .enabled) "false") }}true{{ end -}}
{{- end -}}
{{- end }}
