"""KubernetesObject: any object in any cluster, kept by server-side apply."""
