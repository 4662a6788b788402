/** Short messages about what was done, read out by screen readers. */
import { signal } from "@preact/signals";

export interface Toast {
  number: number;
  text: string;
  isError: boolean;
}

export const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function tell(text: string, isError = false): void {
  const number = (last += 1);
  toasts.value = [...toasts.value, { number, text, isError }];
  setTimeout(() => dismiss(number), isError ? 12_000 : 6_000);
}

export function dismiss(number: number): void {
  toasts.value = toasts.value.filter((toast) => toast.number !== number);
}
