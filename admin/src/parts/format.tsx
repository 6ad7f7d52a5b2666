import { useEffect, useState } from 'preact/hooks';

const whole = new Intl.NumberFormat('en');
const decimal = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** `1,204,331` */
export function number(value: string | number): string {
  if (typeof value === 'string') return /^-?\d+$/.test(value) ? whole.format(BigInt(value)) : value;
  return Number.isInteger(value) || Math.abs(value) >= 100 ? whole.format(Math.round(value)) : decimal.format(value);
}

/** `1,000+` */
export function count({ value, isExact }: { readonly value: number; readonly isExact: boolean }): string {
  return `${number(value)}${isExact ? '' : '+'}`;
}

/** `1 dead letter`, `1,000+ dead letters` */
export function counted(amount: { readonly value: number; readonly isExact: boolean }, name: string): string {
  return `${count(amount)} ${name}${amount.value === 1 && amount.isExact ? '' : 's'}`;
}

/** `2h 5m` */
export function duration(seconds: number): string {
  if (seconds < 1) return seconds <= 0 ? '0s' : `${Math.round(seconds * 1000)}ms`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes}m` : `${minutes}m ${whole % 60}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];

export function bytes(value: string | number): string {
  const power = Math.min(Math.floor(Math.log(Math.max(Number(value), 1)) / Math.log(1000)), units.length - 1);
  return `${decimal.format(Number(value) / 1000 ** power)} ${units[power]}`;
}

/** As a share of 1: `41 %`, and never 100 before it is complete. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value >= 99.95 && value < 100 ? '99.9' : value < 10 && value > 0 ? decimal.format(value) : Math.floor(value)} %`;
}

export function json(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent) ?? 'null';
}

/** A value of a column or a key for reading: text without quotes, if that is not ambiguous. */
export function plain(value: unknown): string {
  return typeof value === 'string' && value !== '' && !/^[\s\d"{[]|^(true|false|null)$/.test(value)
    ? value
    : json(value);
}

/** The key of a row: its value, or a list of values if it has several columns. */
export function keyText(key: unknown): string {
  return plain(Array.isArray(key) && key.length === 1 ? key[0] : key);
}

const dateTime = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' });

/** A moment in the reader's own time zone, such as `2026-01-31 13:00:00`. */
export function Time({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={at}>
      {dateTime.format(new Date(at))}
    </time>
  );
}

/** How long ago, such as `5m 3s ago`. */
export function Ago({ at }: { readonly at: string }) {
  const now = useNow();
  const seconds = (now - Date.parse(at)) / 1000;
  return (
    <time dateTime={at} title={dateTime.format(new Date(at))}>
      {seconds < 2 ? 'just now' : `${duration(seconds)} ago`}
    </time>
  );
}

/** The time, which moves on while it is shown. */
export function useNow(everyMs = 5000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
