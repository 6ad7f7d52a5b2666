import { useEffect, useState } from 'preact/hooks';

export interface Route {
  /** The parts of the path, such as `['versions', 'cart_summary@2']`. */
  readonly path: readonly string[];
  readonly params: URLSearchParams;
}

/** The address is in the fragment, so the server has one page only, and a proxy may serve it below any prefix. */
export function currentRoute(): Route {
  const [path = '', params = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), params: new URLSearchParams(params) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const onChange = () => setRoute(currentRoute());
    addEventListener('hashchange', onChange);
    return () => removeEventListener('hashchange', onChange);
  }, []);
  return route;
}

type Params = Readonly<Record<string, string | number | undefined | null>>;

/** The address of a page, such as `to(['versions', id])`. Empty parameters are left out. */
export function to(path: readonly string[], params: Params = {}): string {
  const used = Object.entries(params).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  );
  const search = used.length > 0 ? `?${new URLSearchParams(used)}` : '';
  return `#/${path.map(encodeURIComponent).join('/')}${search}`;
}

export function go(address: string): void {
  location.hash = address;
}
