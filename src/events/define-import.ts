import { invalidDeclaration } from '../errors.ts';
import type { ExpectedVersion, NewEvent } from './event.ts';
import type { EventFamily } from './event-family.ts';

/** One line of an imported file. */
export interface ImportLine {
  readonly text: string;
  /** 1, 2, 3… */
  readonly number: number;
}

/** What some lines of a file become: events of one stream, appended together. */
export interface ImportedAppend {
  readonly family: EventFamily;
  readonly streamId: string;
  readonly events: readonly NewEvent[];
  /** The same for the same lines in every run, and unique over the log: what was imported already is not imported again. Up to 1 KiB. */
  readonly idempotencyKey: string;
  readonly expectedVersion?: ExpectedVersion;
}

/** How a file becomes events. Made by {@link defineImport}. */
export interface Import {
  readonly kind: 'import';
  readonly name: string;
  readonly description?: string;
  toAppends(lines: AsyncIterable<ImportLine>): AsyncIterable<ImportedAppend>;
}

/**
 * Declares how a text file, read line by line, becomes events: `refold import NAME FILE` streams it in.
 * An interrupted import is run again from the start; idempotency keys skip what is there, a range of the file at a time.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 * @example
 * export const retailImport = defineImport({
 *   name: 'online-retail',
 *   async *toAppends(lines) {
 *     for await (const { text, number } of lines) {
 *       const row = JSON.parse(text);
 *       yield { family: invoice, streamId: row.InvoiceNo, events: [toEvent(row)], idempotencyKey: `online-retail:${number}` };
 *     }
 *   },
 * });
 */
export function defineImport(options: Omit<Import, 'kind'>): Import {
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(options.name))
    throw invalidDeclaration(
      `defineImport('${options.name}')`,
      `an import is named in kebab-case, such as 'online-retail'.`,
    );
  if (typeof options.toAppends !== 'function')
    throw invalidDeclaration(`defineImport('${options.name}')`, `'toAppends' is an async generator function.`);
  return Object.freeze({ kind: 'import', ...options });
}
