import { isIPv6 } from 'node:net';
import type { Viewer } from '../../access.ts';
import { headerOf, type TransportContext } from './transport-context.ts';

/** Names the client that something counts for; undefined if it can't be told from others. */
export type ClientOf = (viewer: Viewer | 'system', transport: TransportContext) => string | undefined;

/**
 * Who is limited together: a viewer, or all who are not authenticated and come from one address. Undefined if that can't be told: the
 * connection is that of a proxy that `gateway.proxies` does not count, and all clients behind it would be one.
 */
export function clientOf(
  viewer: Viewer | 'system',
  transport: TransportContext,
  proxies: number | undefined,
): string | undefined {
  if (viewer === 'system') return undefined;
  if (viewer.id !== null) return `viewer ${JSON.stringify([viewer.id, viewer.tenant])}`;
  const isHidden = proxies === undefined && hidingHeaders.some((name) => headerOf(transport, name) !== undefined);
  const address = isHidden ? undefined : addressOf(transport, proxies ?? 0);
  return address && `address ${networkOf(address)}`;
}

const hidingHeaders = ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'];

/** Of the client as the outermost trusted proxy saw it: what clients write into the header themselves stands before that. */
function addressOf(transport: TransportContext, proxies: number): string | undefined {
  const direct = (transport.req ?? transport.socketRequest)?.socket?.remoteAddress;
  if (proxies === 0) return direct;
  const seen = headerOf(transport, 'x-forwarded-for')?.split(',').map(withoutPort) ?? [];
  return seen.at(-proxies) ?? direct;
}

/** Some proxies add the port, which differs for each connection. */
function withoutPort(entry: string): string {
  const address = entry.trim();
  return /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address;
}

/** A client with IPv6 has a whole network of 64 bits, and may send from another address of it each time. */
function networkOf(address: string): string {
  const [plain = address] = address.split('%'); // without the interface of a link-local one
  if (!isIPv6(plain)) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = '', after] = plain.split('::', 2);
  const [head, tail] = [groupsOf(before), groupsOf(after ?? '')];
  const zeros = after === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...tail];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

function groupsOf(part: string): readonly string[] {
  return part === '' ? [] : part.split(':');
}
