import type { ComponentChildren } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { OpenedAction } from './actions/opened-action.tsx';
import { count, duration, useNow } from './parts/format.tsx';
import { Badge } from './parts/marks.tsx';
import type { Route } from './router.ts';
import { CallerContext } from './server/caller.ts';
import { live } from './server/overview.ts';
import { signOut } from './server/session.ts';
import { useStore } from './server/store.ts';
import { chooseTheme, type Theme, theme } from './theme.ts';

const sections = [
  ['', 'Overview'],
  ['dead-letters', 'Dead letters'],
  ['log', 'Log'],
  ['rows', 'Rows'],
  ['clients', 'Clients'],
  ['reactors', 'Reactors'],
  ['audit', 'Audit log'],
] as const;

interface ShellProps {
  readonly route: Route;
  readonly children: ComponentChildren;
}

/** What surrounds every page: navigation, the state of the connection, the theme, and who is signed in. */
export function Shell({ route, children }: ShellProps) {
  const main = useRef<HTMLElement>(null);
  const [isOpen, setOpen] = useState(false);
  useArrival(route, main, () => setOpen(false));
  return (
    <>
      {/* A button: the fragment of a link would be the address of another page. */}
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href="#/">
          <Logo /> Refold
        </a>
        <ConnectionState />
        <button type="button" class="menu" aria-expanded={isOpen} aria-controls="menu" onClick={() => setOpen(!isOpen)}>
          Menu
        </button>
        <div id="menu" class={isOpen ? 'open' : undefined}>
          <Sections current={route.path[0] === 'versions' ? '' : (route.path[0] ?? '')} />
          <Settings />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      <OpenedAction />
    </>
  );
}

/** On another page, the focus goes to its content and the window's title follows, as after loading a page. */
function useArrival({ path }: Route, main: { current: HTMLElement | null }, onArrival: () => void): void {
  const place = path.slice(0, 2).join('/');
  const isFirst = useRef(true);
  // only when the place changes
  useEffect(() => {
    const heading = main.current?.querySelector('h1')?.textContent;
    document.title = heading ? `${heading} · Refold` : 'Refold';
    if (!isFirst.current) {
      main.current?.focus();
      scrollTo(0, 0);
    }
    isFirst.current = false;
    onArrival();
  }, [place]);
}

function Sections({ current }: { readonly current: string }) {
  const { overview } = useStore(live);
  const letters = overview?.deadLetters;
  return (
    <nav aria-label="Sections">
      <ul>
        {sections.map(([section, title]) => (
          <li key={section}>
            <a href={`#/${section}`} aria-current={section === current ? 'page' : undefined}>
              {title}
              {section === 'dead-letters' && letters && letters.value > 0 && (
                <span class="amount">{count(letters)}</span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function ConnectionState() {
  const { connection, lastMessageAt, problem } = useStore(live);
  const now = useNow(1000);
  const age = lastMessageAt === undefined ? '' : `, last news ${duration((now - lastMessageAt) / 1000)} ago`;
  return (
    <div class="connection">
      <span role="status">
        {connection === 'live' && (
          <Badge tone="good" shape="dot">
            live
          </Badge>
        )}
        {connection === 'connecting' && (
          <Badge tone="quiet" shape="ring">
            connecting
          </Badge>
        )}
        {connection === 'paused' && (
          <Badge tone="quiet" shape="bars">
            paused
          </Badge>
        )}
        {connection === 'lost' && (
          <Badge tone="bad" shape="cross">
            connection lost
          </Badge>
        )}
        {connection === 'refused' && (
          <Badge tone="warn" shape="triangle">
            not live: {problem}
          </Badge>
        )}
      </span>
      {connection === 'lost' && <span class="quiet-text">trying again{age}</span>}
    </div>
  );
}

function Settings() {
  const caller = useContext(CallerContext);
  const chosen = useStore(theme);
  return (
    <div class="settings">
      <label class="theme">
        Theme
        <select value={chosen} onChange={({ currentTarget }) => chooseTheme(currentTarget.value as Theme)}>
          <option value="auto">as the system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
      <p>
        <strong>{caller.name}</strong>
        <small>{caller.rights.length <= 1 ? 'may only read' : `${caller.rights.length} rights`}</small>
        <small>at {caller.process}</small>
      </p>
      <button type="button" onClick={() => signOut()}>
        Sign out
      </button>
    </div>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <path class="sheet" d="M5 27V5h14l8 8-8 8H12v6z" />
      <path class="fold" d="M12 21V12h15z" />
    </svg>
  );
}
