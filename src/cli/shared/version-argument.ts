import { RefoldError } from '../../errors.ts';

/** Parses `cart_summary@2` to name and version. */
export function parseVersionId(text: string): { name: string; version: number } {
  const match = /^([a-z][a-z0-9_]*)@(\d{1,4})$/.exec(text);
  if (!match)
    throw new RefoldError('INVALID_CONFIG', `'${text}' is not a projection version; write it like cart_summary@2.`);
  return { name: match[1] as string, version: Number(match[2]) }; // both groups are part of the match
}

/** The argument for output that programs read. */
export const jsonArgument = { json: { type: 'boolean', description: 'As JSON' } } as const;

/** The argument for the reason in the audit log. */
export const reasonArgument = {
  reason: { type: 'string', description: 'Why, for the audit log', alias: 'r', valueHint: 'TEXT' },
} as const;
