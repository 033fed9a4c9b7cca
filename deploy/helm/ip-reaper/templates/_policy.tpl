{{/*
The policy of an account. Takes root and release. Takes now, which sets the grace
periods to 0.
*/}}
{{- define "ip-reaper.policy" -}}
{{- $policy := dict "apiVersion" "ip-reaper/v1alpha1" "kind" "ReapPolicy" "dryRun" (not .release) -}}
{{- range $field, $value := .root.Values.policy -}}
  {{- $_ := set $policy $field $value -}}
{{- end -}}
{{- if .now -}}
  {{- $_ := set $policy "gracePeriod" "0s" -}}
  {{- $_ := set $policy "minAge" "0s" -}}
{{- end -}}
{{- $backends := dict -}}
{{- range $name, $backend := .root.Values.backends -}}
  {{- $settings := dict -}}
  {{- range $field := list "enabled" "resources" -}}
    {{- if hasKey $backend $field -}}
      {{- $_ := set $settings $field (get $backend $field) -}}
    {{- end -}}
  {{- end -}}
  {{- /* The variables of Calico's own programs select etcd. */ -}}
  {{- if eq ($backend.datastore | default "") "kubernetes" -}}
    {{- $_ := set $settings "datastore" "kubernetes" -}}
  {{- end -}}
  {{- if not (has (toJson $settings) (list `{"enabled":"auto"}` `{"resources":[]}`)) -}}
    {{- $_ := set $backends $name $settings -}}
  {{- end -}}
{{- end -}}
{{- with $backends -}}
  {{- $_ := set $policy "backends" . -}}
{{- end -}}
{{- toYaml $policy -}}
{{- end }}
