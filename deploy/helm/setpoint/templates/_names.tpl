{{- define "setpoint.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{ $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "setpoint.account" -}}
{{ .Values.serviceAccount.name | default (include "setpoint.name" .) }}
{{- end }}

{{- define "setpoint.selected" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "setpoint.labels" -}}
{{ include "setpoint.selected" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "setpoint.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "setpoint.subject" -}}
- kind: ServiceAccount
  name: {{ include "setpoint.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* Whether a kind is handled that makes objects of others: then there are rights on those. */}}
{{- define "setpoint.handlesOwners" -}}
{{- $owners := .Files.Get "files/owners.yaml" | fromYamlArray }}
{{- if empty .Values.kinds }}yes{{ end }}
{{- range .Values.kinds }}{{ if has (lower . | trimSuffix "s") $owners }}yes{{ end }}{{ end }}
{{- end }}
