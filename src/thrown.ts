import { types } from 'node:util';

// Longer than any message that says something, and short enough for a log line, a status and thousands of dead letters.
const longestText = 10_000;

/**
 * A text in a form that PostgreSQL, JSON and logs take: without U+0000 and halves of surrogate pairs, which become U+FFFD, and with at most
 * 10,000 characters. A longer one keeps its beginning and its end.
 */
export function storedText(text: string): string {
  const short = text.length <= longestText ? text : shortened(text);
  return short.includes('\u0000') ? short.replaceAll('\u0000', '\ufffd').toWellFormed() : short.toWellFormed();
}

function shortened(text: string): string {
  const left = `\n… (${text.length} characters in all) …\n`;
  const end = longestText / 4;
  return text.slice(0, longestText - left.length - end) + left + text.slice(-end);
}

/** What something thrown says. JavaScript allows to throw anything; this never throws. Neither bounded nor well-formed, see {@link reasonOf}. */
export function messageOf(thrown: unknown): string {
  try {
    const message = thrown instanceof Error ? thrown.message : thrown;
    return typeof message === 'object' && message !== null ? objectText(message) : String(message);
  } catch {
    return 'something was thrown that can not be shown as a text';
  }
}

function objectText(value: object): string {
  const text = String(value);
  return text === '[object Object]' ? (JSON.stringify(value) ?? text) : text;
}

/** What something thrown says, to be stored, logged or shown. */
export function reasonOf(thrown: unknown): string {
  return storedText(messageOf(thrown));
}

/** The stack of something thrown, if it has one. Not bounded, as {@link messageOf}. */
export function stackOf(thrown: unknown): string | undefined {
  try {
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    return typeof stack === 'string' ? stack : undefined;
  } catch {
    return undefined;
  }
}

/** Something thrown as an error that everybody can read, log and store: itself if it is one, else a new error that says the same. */
export function errorOf(thrown: unknown): Error {
  if (isReadable(thrown, 0)) return thrown;
  const error = new Error(reasonOf(thrown));
  const stack = stackOf(thrown);
  if (stack !== undefined) error.stack = storedText(stack);
  return error;
}

/** Something thrown, as it is. Only a proxy becomes an error: each access to it may throw, even `instanceof`. */
export function withoutTraps(thrown: unknown): unknown {
  return types.isProxy(thrown) ? errorOf(thrown) : thrown;
}

/** Calls a function of the application. @throws what it throws, see {@link withoutTraps} */
export function called<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw withoutTraps(thrown);
  }
}

// Chains of causes are short. A longer one may be a circle.
const deepestCause = 10;

function isReadable(thrown: unknown, depth: number): thrown is Error {
  try {
    if (types.isProxy(thrown) || !(thrown instanceof Error) || depth > deepestCause) return false;
    if (!isStored(thrown.message) || !isStored(thrown.stack ?? '') || typeof thrown.name !== 'string') return false;
    // Loggers read what an error has of its own, and mark it.
    for (const name of Object.keys(thrown)) void (thrown as unknown as Record<string, unknown>)[name];
    if (!Object.isExtensible(thrown)) return false;
    const { cause } = thrown;
    const within: unknown[] = 'errors' in thrown && Array.isArray(thrown.errors) ? [...thrown.errors, cause] : [cause];
    return within.every((one) => typeof one !== 'object' || one === null || isReadable(one, depth + 1));
  } catch {
    return false;
  }
}

function isStored(text: unknown): boolean {
  return typeof text === 'string' && text.length <= longestText && text.isWellFormed() && !text.includes('\u0000');
}

// JSON.stringify escapes NUL and lone surrogates in these forms, and nothing else. jsonb refuses both.
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g;

/** A value of the application as JSON that PostgreSQL takes, with bigints as texts. A value that JSON can't hold becomes `{ unreadable: reason }`. */
export function storedJson(value: unknown): string {
  try {
    const json = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part)) ?? 'null';
    return json.replace(unstorable, '$1\ufffd');
  } catch (error) {
    return JSON.stringify({ unreadable: reasonOf(error) });
  }
}
