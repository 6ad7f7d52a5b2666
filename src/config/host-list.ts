/** The value of `target_session_attrs` in a connection URL, as in libpq. */
export type SessionTarget = 'any' | 'read-write' | 'read-only' | 'primary' | 'standby' | 'prefer-standby';

export interface Host {
  readonly host: string;
  readonly port: number;
}

/** The hosts in a connection URL: `postgres://user@host1:5432,host2:5433/db?target_session_attrs=read-write`. */
export interface HostList {
  readonly hosts: readonly Host[];
  readonly target: SessionTarget;
  /** The same URL with the first host only, because the driver reads one host. */
  readonly url: string;
}

const targets: readonly string[] = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'];

/** Returns undefined if the URL cannot be parsed. */
export function parseHostList(url: string): HostList | undefined {
  const [, before = '', authority = '', rest = ''] = /^([a-z]+:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/s.exec(url) ?? [];
  const [first = '', ...others] = authority.split(',');
  const single = `${before}${first}${rest}`;
  if (before === '' || !URL.canParse(single)) return undefined;
  const { searchParams } = new URL(single);
  const target = searchParams.get('target_session_attrs') ?? 'any';
  const hosts: Host[] = [];
  for (const text of [first, ...others]) {
    // Parsed with a standard scheme to check the port of each host as the URL's own port is checked.
    if (others.length > 0 && (text === '' || !URL.canParse(`http://${text}`))) return undefined;
    const [, host = '', port = ''] = /^(.*?)(?::(\d*))?$/.exec(text) ?? [];
    hosts.push({ host: decoded(host.replace(/^\[(.*)\]$/, '$1')), port: port === '' ? 5432 : Number(port) });
  }
  return targets.includes(target) ? { hosts, target: target as SessionTarget, url: single } : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
