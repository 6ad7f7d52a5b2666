import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type CheckedAdmin, checkRights } from '../../config/admin-options.ts';
import { RefoldError } from '../../errors.ts';
import type { Caller } from './require-right.ts';

/** Recognizes the caller of a request by its headers. Null if its credentials are missing or wrong. */
export type RecognizeCaller = (headers: IncomingHttpHeaders) => Promise<Caller | null>;

/**
 * Tokens count only in the header `authorization`, which a browser never sends by itself: a page of another site can't use them. They are compared by
 * their digests, in constant time, and always all of them.
 */
export function createCallerRecognition(admin: () => CheckedAdmin): RecognizeCaller {
  const digests = new WeakMap<object, Buffer>();
  const digestOf = (token: CheckedAdmin['tokens'][number]) => {
    const digest = digests.get(token) ?? sha256(token.token);
    digests.set(token, digest);
    return digest;
  };
  return async (headers) => {
    const { tokens, authorize } = admin();
    const [, given] = /^Bearer ([\x21-\x7e]+)$/i.exec(headers.authorization ?? '') ?? [];
    const digest = sha256(given ?? '');
    const [known] = tokens.filter((token) => timingSafeEqual(digestOf(token), digest));
    if (known && given !== undefined) return known;
    const found = await authorize?.({ header: (name) => textOf(headers[name.toLowerCase()]) });
    if (!found) return null;
    if (typeof found.name !== 'string' || found.name.trim() === '')
      throw new RefoldError('INVALID_CONFIG', 'gateway.admin.authorize returned a caller without a name.');
    return { name: found.name, rights: checkRights('gateway.admin.authorize: rights', found.rights) };
  };
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.join(', ');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
