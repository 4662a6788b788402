{{- define "setpoint.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{ $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* In the namespace that is looked after, the account `setpoint` is that of the tenant. */}}
{{- define "setpoint.account" -}}
{{- $suffix := ternary "-controller" "" (eq .Release.Namespace .Values.watchNamespace) }}
{{- $name := .Values.serviceAccount.name | default (printf "%s%s" (include "setpoint.name" .) $suffix) }}
{{- if and $suffix (eq $name "setpoint") }}
{{- fail "serviceAccount.name: setpoint is the account of the tenant in the namespace that is looked after: choose another" }}
{{- end }}
{{- $name }}
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

{{/* Every kind by its name in lower case, as JSON. Those of the catalogue are handled when `kinds` names them. */}}
{{- define "setpoint.known" -}}
{{- $known := .Files.Get "files/kinds.yaml" | fromYaml }}
{{- range $name, $row := .Files.Get "files/catalogue.yaml" | fromYaml }}
{{- $kind := dict "kind" (index $row 0) "group" (index $row 1) "plural" (index $row 2) "watches" (slice $row 3) }}
{{- $_ := set $known $name (merge $kind (dict "default" false "catalogued" true "writtenBy" "edit" "makes" list "reads" list)) }}
{{- end }}
{{- toJson $known }}
{{- end }}

{{/* The handled kinds in lower case, as a JSON list, in the order given: those that are named, else the default ones. */}}
{{- define "setpoint.kinds" -}}
{{- $known := include "setpoint.known" . | fromJson }}
{{- $names := list }}
{{- range .Values.kinds }}
{{- $name := lower . }}
{{- if not (hasKey $known $name) }}
{{- range $other, $kind := $known }}{{ if eq $kind.plural $name }}{{ $name = $other }}{{ end }}{{ end }}
{{- end }}
{{- if not (hasKey $known $name) }}
{{- $own := keys ($.Files.Get "files/kinds.yaml" | fromYaml) | sortAlpha | join ", " }}
{{- fail (printf "kinds: no kind %q is known here; there is %s, and what files/catalogue.yaml has" . $own) }}
{{- end }}
{{- $names = append $names $name }}
{{- end }}
{{- if empty $names }}
{{- range $name, $kind := $known }}{{ if $kind.default }}{{ $names = append $names $name }}{{ end }}{{ end }}
{{- end }}
{{- range $name := $names }}
{{- range (index $known $name).makes }}
{{- if not (has (lower .) $names) }}
{{- fail (printf "kinds: a %s makes a %s, which has to be handled as well: add %s" (index $known $name).kind . .) }}
{{- end }}
{{- end }}
{{- end }}
{{- $names | uniq | toJson }}
{{- end }}

{{/* The handled kinds by name, as an option takes them. */}}
{{- define "setpoint.kindNames" -}}
{{- $known := include "setpoint.known" . | fromJson }}
{{- $names := list }}
{{- range include "setpoint.kinds" . | fromJsonArray }}{{ $names = append $names (index $known .).kind }}{{ end }}
{{- join "," $names }}
{{- end }}

{{/* What the handled kinds have in `member` of files/kinds.yaml, as a sorted JSON list; `resource`: GROUP/PLURAL. */}}
{{- define "setpoint.ofKinds" -}}
{{- $known := include "setpoint.known" .context | fromJson }}
{{- $found := list }}
{{- range include "setpoint.kinds" .context | fromJsonArray }}
{{- $kind := index $known . }}
{{- if eq $.member "resource" }}
{{- $found = append $found (printf "%s/%s" $kind.group $kind.plural) }}
{{- else }}
{{- $found = concat $found (index $kind $.member) }}
{{- end }}
{{- end }}
{{- $found | uniq | sortAlpha | toJson }}
{{- end }}

{{/* Rules of a role, by group: `verbs` on `resources`, each GROUP/PLURAL; with `subresource`, on that alone. */}}
{{- define "setpoint.rules" -}}
{{- $groups := dict }}
{{- range .resources }}
{{- $parts := splitn "/" 2 . }}
{{- $name := $parts._1 }}
{{- with $.subresource }}{{ $name = printf "%s/%s" $name . }}{{ end }}
{{- $_ := set $groups $parts._0 (append (get $groups $parts._0 | default list) $name) }}
{{- end }}
{{- range $group, $names := $groups }}
- apiGroups: [{{ $group | quote }}]
  resources: {{ toJson $names }}
  verbs: {{ toJson $.verbs }}
{{- end }}
{{- end }}
