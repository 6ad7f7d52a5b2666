import { useState } from 'preact/hooks';
import { Field } from './parts/form.tsx';
import { Notice } from './parts/marks.tsx';
import { session, signIn } from './server/session.ts';
import { useStore } from './server/store.ts';

export function SignIn() {
  const { problem } = useStore(session);
  const [token, setToken] = useState('');
  return (
    <main class="alone">
      <h1>Refold</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim()) signIn(token.trim());
        }}
      >
        {problem && (
          <div role="alert">
            <Notice tone="bad">{problem}</Notice>
          </div>
        )}
        <Field label="Token" hint="One of the tokens in the configuration (admin). It stays in this tab.">
          {(id, hintId) => (
            <input
              id={id}
              type="password"
              autocomplete="off"
              required
              aria-describedby={hintId}
              value={token}
              onInput={({ currentTarget }) => setToken(currentTarget.value)}
            />
          )}
        </Field>
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
