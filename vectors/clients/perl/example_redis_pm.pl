use v5.36; use FindBin; use Redis;
require "$FindBin::Bin/redis_pm.pl";

my $client = Redis->new(server => $ENV{REDIS_URL} =~ s{^redis://}{}r);
my $allow = limiter($client, 'lua/gcra_v2.lua');
my ($status, $remaining, $retry_after_ns, $reset_after_ns) = $allow->('rl:{42}', 300, 60_000_000_000, 60, 1);

# A call of a language model, at most 60 a minute, and 1,000,000 tokens a day.
my ($reserve, $settle) = reserver($client, 'lua/limits_v1.lua');
my $calls = {name => 'calls', kind => 'gcra', amount => 60, period_ns => 60_000_000_000, burst => 60};
my $tokens = {name => 'tokens', kind => 'gcra', amount => 1_000_000, period_ns => 86_400_000_000_000, burst => 100_000};
my $reservation = $reserve->(['42', $calls, 1], ['42', $tokens, 4000]);
if ($reservation->{status} == 1) {
    my $tokens_used = 500; # as the model's answer says
    $settle->($reservation, 1, $tokens_used);
} else {
    say "try again in $reservation->{retry_after_ns} ns";
}
